"""Two consecutive segments, swapped half of the time (ALBERT, section 3.1)."""

from albert_tf.pretraining_data.packing.pairs import Pairs, draw_lengths, to_segments


class Order(Pairs):
    """Pairs of consecutive segments of one document; label 1 means swapped."""

    name = "order"
    summary = "consecutive segments, swapped or not (ALBERT)"
    label_meanings = ("in the order of the text", "swapped: B comes before A in the text")
    share_of_label = ("share_swapped", "swapped")

    def pair_maker(self, documents, draw_target, generator):

        def make_pair(document, begin):
            for first_length, second_length in draw_lengths(document, begin, draw_target(), generator):
                pair = document.cut_pair(begin, first_length, second_length)
                exchanged = document.cut_pair(begin, second_length, first_length)
                if pair[0].edges == pair[1].edges == exchanged[0].edges == exchanged[1].edges:
                    label = int(generator.random() < 0.5)
                    segments = to_segments(document, pair[label], document, pair[1 - label], label)
                    return segments, document.begin_after(pair[1])
            return None

        return make_pair
