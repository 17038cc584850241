"""Two consecutive segments, swapped half of the time (ALBERT, section 3.1)."""

from albert_tf.pretraining_data.packing.packing import Segments
from albert_tf.pretraining_data.packing.pairs import Pairs, draw_lengths


class Order(Pairs):
    """Pairs of consecutive segments of one document; label 1 means swapped."""

    name = "order"
    summary = "consecutive segments, swapped or not (ALBERT)"
    label_meanings = ("in the order of the text", "swapped: B comes before A in the text")
    share_of_label = ("share_swapped", "swapped")

    def pair_maker(self, documents, draw_target, generator):

        def make_pair(document, begin):
            offset, ends, edges = document.offset, document.ends, document.edges
            for first, second in draw_lengths(document, begin, draw_target(), generator):
                # The pair, and the one with the lengths exchanged.
                end, other_end = begin + first, begin + second
                next_begin, other_next_begin = ends[end], ends[other_end]
                next_end, other_next_end = next_begin + second, other_next_begin + first
                if (begin in edges) == (next_begin in edges) == (other_next_begin in edges) and (
                    (end in edges) == (next_end in edges) == (other_end in edges) == (other_next_end in edges)
                ):
                    label = int(generator.random() < 0.5)
                    pair = (offset + begin, offset + end), (offset + next_begin, offset + next_end)
                    return Segments(*pair[label], *pair[1 - label], label), document.begin_after(next_end)
            return None

        return make_pair
