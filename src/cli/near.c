/* "Did you mean": the number of letters to insert, drop, change or swap with a neighbour. */
#include "cli/command.h"

enum { NEAR_LENGTH_MAX = 32, NEAR_DISTANCE_MAX = 2 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t table[NEAR_LENGTH_MAX + 1][NEAR_LENGTH_MAX + 1];

    for (size_t i = 0; i <= a_len; i++) {
        for (size_t k = 0; k <= b_len; k++) {
            if (i == 0 || k == 0) {
                table[i][k] = i + k;
                continue;
            }
            size_t best = table[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            best = least(best, least(table[i - 1][k], table[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                best = least(best, table[i - 2][k - 2] + 1);
            table[i][k] = best;
        }
    }
    return table[a_len][b_len];
}

void pl__near_offer(struct pl_near *near, const char *candidate)
{
    size_t wanted_len = strlen(near->wanted);
    size_t candidate_len = strlen(candidate);

    if (wanted_len > NEAR_LENGTH_MAX || candidate_len > NEAR_LENGTH_MAX)
        return;
    size_t far = distance(near->wanted, wanted_len, candidate, candidate_len);
    /* Two changes to a word of two letters are another word. */
    if (far > NEAR_DISTANCE_MAX || far >= wanted_len || (near->best && far >= near->distance))
        return;
    near->best = candidate;
    near->distance = far;
}
