"""Faults that the statements of a module can have, one at a time: a sign, an offset, a default, what is left out."""

import ast
import copy

KINDS = ("sign", "offset", "default", "dropped", "swapped", "negated")

_TOLD = {"print", "tell", "tell_once", "log", "warn"}
_COMMUTE = {"max", "min", "maximum", "minimum", "add", "multiply", "isinstance", "logical_and", "logical_or"}
_INVERSE = {ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn, ast.Lt: ast.GtE, ast.Gt: ast.LtE}
_INVERSE |= {inverse: operator for operator, inverse in _INVERSE.items()}
_OFF_BY_ONE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def with_fields(node, **fields):
    """Returns a node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def negated(test):
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return with_fields(test, ops=[_INVERSE[type(test.ops[0])]()])
    return ast.UnaryOp(ast.Not(), test)


def another(constant):
    """Returns a constant of the same type, or None if it is neither a number nor a bool."""
    value = getattr(constant, "value", None)
    if isinstance(value, bool):
        return ast.Constant(not value)
    if isinstance(value, (int, float)):
        return ast.Constant(value * 2 or type(value)(1))
    return None


def without_one(values):
    """Yields a list without each of its values, and that value."""
    for place, value in enumerate(values):
        yield values[:place] + values[place + 1 :], value


def called(node):
    """Returns the last name of what a node calls, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def shifted(node, operator):
    return ast.BinOp(node, operator(), ast.Constant(1))


def faulty(node):
    """Yields kinds of faults and what to put in the place of a node."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _SIGNS:
        yield "sign", with_fields(node, op=_SIGNS[type(node.op)]())
        if isinstance(node, ast.BinOp) and getattr(node.right, "value", None) == 1:
            yield "offset", node.left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OFF_BY_ONE:
        yield "offset", with_fields(node, ops=[_OFF_BY_ONE[type(node.ops[0])]()])
    elif isinstance(node, ast.Slice):
        if node.lower:
            yield "offset", with_fields(node, lower=shifted(node.lower, ast.Add))
        if node.upper:
            yield "offset", with_fields(node, upper=shifted(node.upper, ast.Sub))
    elif isinstance(node, ast.arguments):
        for field in ("defaults", "kw_defaults"):
            for place, default in enumerate(getattr(node, field)):
                if other := another(default):
                    defaults = getattr(node, field)
                    yield "default", with_fields(node, **{field: defaults[:place] + [other] + defaults[place + 1 :]})
    elif isinstance(node, ast.AnnAssign):
        if other := another(node.value):
            yield "default", with_fields(node, value=other)
    elif isinstance(node, ast.Dict) and len(node.keys) > 1:
        for (keys, key), (values, _) in zip(without_one(node.keys), without_one(node.values)):
            if isinstance(key, ast.Constant):
                yield "dropped", with_fields(node, keys=keys, values=values)
    elif isinstance(node, ast.Call):
        for keywords, keyword in without_one(node.keywords):
            if keyword.arg:
                yield "dropped", with_fields(node, keywords=keywords)
        arguments = node.args
        if called(node) == "get" and len(arguments) == 2 and (other := another(arguments[1])):
            yield "default", with_fields(node, args=[arguments[0], other])
        if called(node) == "range" and len(arguments) < 3:
            yield "offset", with_fields(node, args=[*arguments[:-1], shifted(arguments[-1], ast.Sub)])
        for place in range(len(arguments) - 1):
            first, second = arguments[place : place + 2]
            is_plain = not any(isinstance(argument, ast.Starred) for argument in (first, second))
            if is_plain and called(node) not in _COMMUTE and ast.dump(first) != ast.dump(second):
                yield "swapped", with_fields(node, args=[*arguments[:place], second, first, *arguments[place + 2 :]])
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield "negated", with_fields(node, test=negated(node.test))
    elif isinstance(node, ast.comprehension):
        for others, test in without_one(node.ifs):
            yield "negated", with_fields(node, ifs=[*others, negated(test)])


def computing(node):
    """Yields a node and all below it but for annotations and what is told: errors, printed lines, formatted texts."""
    if isinstance(node, (ast.Raise, ast.JoinedStr)) or called(node) in _TOLD or called(node).endswith("Error"):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from computing(child)


def head(statement):
    """Returns a statement without the statements inside it and without decorators."""
    inside = {name: [] for name in ("orelse", "finalbody", "handlers", "decorator_list") if hasattr(statement, name)}
    return with_fields(statement, body=[ast.Pass()], **inside) if hasattr(statement, "body") else statement


def text_of(statement):
    return ast.unparse(ast.fix_missing_locations(statement)).removesuffix("\n    pass")


def statements(node, definition=""):
    """Yields the statements of functions and classes below a node, with the name of the definition each is in."""
    for child in ast.iter_child_nodes(node):
        name = f"{definition}.{child.name}".lstrip(".") if isinstance(child, _DEFINITIONS) else definition
        if isinstance(child, ast.stmt) and name and not isinstance(child, ast.Try):
            yield name, child
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from statements(child, name)


def faults_of(statement):
    """Yields the faults that a statement can have: the kind, and its text with the fault."""
    whole = head(statement)
    for node in [] if isinstance(whole, ast.Raise) else computing(whole):
        for kind, other in faulty(node):
            yield kind, text_of(copy.deepcopy(whole, {id(node): other}))


def replaced(source, statement, text):
    """Returns a file's text with another statement, or head of one, in the place of one of its statements."""
    lines = source.splitlines(keepends=True)
    begin, end = statement.lineno - 1, statement.end_lineno
    if inside := getattr(statement, "body", []):
        end = min(node.lineno for node in [inside[0], *getattr(inside[0], "decorator_list", [])]) - 1
    if lines[begin].lstrip().startswith("elif "):
        text = f"el{text}"
    lines[begin:end] = [" " * statement.col_offset + text + "\n"]
    return "".join(lines)
