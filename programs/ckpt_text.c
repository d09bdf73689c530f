/* Output: strings from files are escaped. */
#include "programs/ckpt.h"
#include <string.h>

void ckpt_complain(void)
{
    fputs("eddy-ckpt: ", stderr);
    ckpt_print_word(stderr, ed_error());
    fputc('\n', stderr);
    ed_clear_error();
}

/* The length in bytes of the UTF-8 character at s, if it can be printed unchanged; 0 for control
 * characters (also those above ASCII) and invalid UTF-8. */
static size_t printable(const uint8_t *s, size_t left)
{
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
    size_t n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
    if (!n || n > left) return 0;
    uint32_t character = n == 1 ? *s : *s & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        character = character << 6 | (s[i] & 0x3f);
    }
    bool surrogate = character >= 0xd800 && character < 0xe000;
    bool refused = character < least[n] || character > 0x10ffff || surrogate;
    return refused || character == 0x7f || character == '\\' ? 0 : n;
}

static void print_escape(FILE *to, uint8_t byte)
{
    switch (byte) {
    case '\n': fputs("\\n", to); break;
    case '\t': fputs("\\t", to); break;
    case '\\': fputs("\\\\", to); break;
    default: fprintf(to, "\\x%02x", byte);
    }
}

void ckpt_print_text(FILE *to, const void *bytes, size_t size)
{
    const uint8_t *s = bytes;
    for (size_t i = 0; i < size;) {
        size_t n = printable(s + i, size - i);
        if (n)
            fwrite(s + i, 1, n, to);
        else
            print_escape(to, s[i]);
        i += n ? n : 1;
    }
}

void ckpt_print_word(FILE *to, const char *word)
{
    ckpt_print_text(to, word, strlen(word));
}

void ckpt_print_name(FILE *to, const char *name)
{
    ckpt_print_word(to, *name ? name : "(the tensor)");
}

char *ckpt_shape_text(const archive_item *item)
{
    io_buffer b = {NULL, 0, 0, false};
    io_put(&b, "[", 1);
    for (int i = 0; i < item->rank; i++)
        io_put_format(&b, "%s%lld", i ? ", " : "", (long long)item->shape[i]);
    io_put(&b, "]", 2);
    if (!b.failed) return (char *)b.data;
    io_buffer_free(&b);
    return NULL;
}
