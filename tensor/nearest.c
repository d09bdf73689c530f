#include "tensor/nearest.h"
#include <ctype.h>
#include <string.h>

/* Words as they are compared: in lower case, without underscores. */
enum { LONGEST = 63 };

static int plain_word(char *to, const char *s)
{
    int n = 0;
    for (; *s && n < LONGEST; s++)
        if (*s != '_') to[n++] = (char)tolower((unsigned char)*s);
    to[n] = 0;
    return n;
}

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

/* The edit distance: letters changed, added, removed or swapped with their neighbours. */
static int distance(const char *a, int a_count, const char *b, int b_count)
{
    int rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= b_count; j++) row[j] = j;
    for (int i = 1; i <= a_count; i++) {
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= b_count; j++) {
            row[j] =
                least_of(least_of(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before[j - 2] + 1);
        }
    }
    return row[b_count];
}

void nearest_see(nearest_words *found, const char *wanted, const char *word)
{
    char a[LONGEST + 1], b[LONGEST + 1];
    const int a_count = plain_word(a, wanted), b_count = plain_word(b, word);
    if (!a_count || !b_count) return;
    int d = distance(a, a_count, b, b_count);
    if (d > 1 && a_count > 2 &&
        (!strncmp(a, b, (size_t)a_count) || (b_count > 2 && !strncmp(a, b, (size_t)b_count))))
        d = 1;
    if (d > 1 + a_count / 4 || (found->count && d > found->distance)) return;
    if (!found->count || d < found->distance) found->count = 0;
    found->distance = d;
    if (found->count < NEAREST_MOST) found->words[found->count++] = word;
}

void nearest_text(const nearest_words *found, char *to, size_t size)
{
    size_t used = 0;
    *to = 0;
    for (int i = 0; i < found->count && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s\"%s\"",
                                 !i                     ? "did you mean "
                                 : i + 1 < found->count ? ", "
                                                        : " or ",
                                 found->words[i]);
    if (found->count && used < size) snprintf(to + used, size - used, "?");
}
