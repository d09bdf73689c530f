/* What files are made of: dtypes, checksums, bytes read by a cursor and gathered in buffers. */
#include "io/bytes.h"
#include "io/checksum.h"
#include "io/dtype.h"
#include "tests/noise.h"

static int64_t bytes_before;

static int begin(void **state)
{
    (void)state;
    bytes_before = ed_memory_stats().live_bytes;
    return 0;
}

static int end(void **state)
{
    ed_memory_fail_at(-1, false);
    assert_int_equal(ed_memory_stats().live_bytes, bytes_before);
    return check_end(state);
}

/* ---- Dtypes ---------------------------------------------------------------------------------- */

static void dtypes(void **state)
{
    (void)state;
    for (int d = 1; d < ED_DTYPE_COUNT; d++) {
        io_dtype there = io_dtype_from((ed_dtype)d);
        assert_int_equal(io_dtype_to(there), d);
        assert_int_equal(io_dtype_bits(there), 8 * dtype_size((ed_dtype)d));
        assert_int_equal(io_dtype_part(there), dtype_size((ed_dtype)d));
        assert_string_equal(io_dtype_name(there), ed_dtype_name((ed_dtype)d));
    }
    for (int d = 1; d <= IO_FLOAT4_E2M1FN; d++) {
        bool sized = d != IO_STRING && d != IO_RESOURCE && d != IO_VARIANT;
        assert_string_not_equal(io_dtype_name(d), "unknown");
        assert_int_equal(io_dtype_bits(d) > 0, sized);
        assert_int_equal(io_dtype_bits(d) % 8, 0);
        for (int e = 1; e < d; e++) assert_string_not_equal(io_dtype_name(d), io_dtype_name(e));
    }
    assert_int_equal(io_dtype_from(ED_DTYPE_NONE), IO_NONE);
    assert_int_equal(io_dtype_part(IO_COMPLEX64), 4);
    assert_int_equal(io_dtype_part(IO_COMPLEX128), 8);
    assert_int_equal(io_dtype_bits(IO_COMPLEX128), 128);
    assert_int_equal(io_dtype_bits(IO_INT4), 8);
    assert_int_equal(io_dtype_bits(IO_FLOAT6_E3M2), 6);
    static const int none[] = {-1, 0, 34, 101, 1000, 1004, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_equal(io_dtype_name(none[i]), "unknown");
        assert_int_equal(io_dtype_bits(none[i]), 0);
        assert_int_equal(io_dtype_to(none[i]), ED_DTYPE_NONE);
        assert_int_equal(io_dtype_part(none[i]), 1);
    }
}

/* ---- Checksums ------------------------------------------------------------------------------- */

/* Bit by bit, as the definition says. */
static uint32_t crc_by_definition(const uint8_t *p, size_t size)
{
    uint32_t r = ~0u;
    for (size_t i = 0; i < size; i++) {
        r ^= p[i];
        for (int bit = 0; bit < 8; bit++) r = r & 1 ? r >> 1 ^ 0x82f63b78u : r >> 1;
    }
    return ~r;
}

static void crc_vectors(void **state)
{
    (void)state;
    static const uint8_t zeros[32];
    assert_int_equal(io_crc32c(0, NULL, 0), 0);
    assert_int_equal(io_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(io_crc32c(0, zeros, 32), 0x8a9136aau);
    assert_int_equal(io_crc32c_mask(0xe3069283u), 0xc78ab0e5u);
    assert_int_equal(io_crc32c_mask(0), 0xa282ead8u);
    assert_int_equal(io_crc32c_mask(0x8a9136aau), 0x0fd7fffau);
    for (uint32_t crc = 1; crc; crc <<= 1)
        assert_int_equal(io_crc32c_unmask(io_crc32c_mask(crc)), crc);
}

static void crc_everywhere(void **state)
{
    (void)state;
    enum { MOST = 300, LARGE = 40000 };
    uint8_t *p = noise(LARGE + 16, 1);
    for (size_t at = 0; at < 16; at++)
        for (size_t n = 0; n <= MOST; n++) {
            uint32_t crc = crc_by_definition(p + at, n);
            assert_int_equal(io_crc32c(0, p + at, n), crc);
            assert_int_equal(io_crc32c_plain(0, p + at, n), crc);
        }
    for (size_t n = MOST; n <= LARGE; n += 61) {
        uint32_t crc = crc_by_definition(p + n % 16, n);
        assert_int_equal(io_crc32c(0, p + n % 16, n), crc);
        assert_int_equal(io_crc32c_plain(0, p + n % 16, n), crc);
        size_t part = n * 7 % 5003 % n;
        uint32_t first = io_crc32c(0, p + n % 16, part);
        assert_int_equal(io_crc32c(first, p + n % 16 + part, n - part), crc);
    }
    free(p);
}

static void digests(void **state)
{
    (void)state;
    enum { N = 10000 };
    char whole[33], pieces[33];
    io_digest_text(io_digest_of(NULL, 0), whole);
    assert_string_equal(whole, "99aa06d3014798d86001c324468d497f");
    uint8_t *p = noise(N, 2);
    for (size_t n = 0; n <= N; n += n < 600 ? 1 : 997) {
        io_digest_text(io_digest_of(p, n), whole);
        io_digester *d = io_digest_begin();
        assert_non_null(d);
        for (size_t at = 0, size; at < n; at += size) {
            size = 1 + at * 13 % 1021;
            if (size > n - at) size = n - at;
            io_digest_add(d, p + at, size);
            io_digest_add(d, NULL, 0);
        }
        io_digest_text(io_digest_end(d), pieces);
        memory_free(d);
        assert_string_equal(whole, pieces);
    }
    free(p);
    ed_memory_fail_at(0, false);
    assert_null(io_digest_begin());
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void cursor(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff, 7, 8};
    io_cursor c = io_cursor_on(bytes, sizeof bytes);
    assert_int_equal(io_u8(&c), 1);
    assert_int_equal(io_u16(&c), 0x0302);
    assert_int_equal(io_u32(&c), 0x07060504);
    assert_true(io_u64(&c) == 0xff0e0d0c0b0a0908u);
    assert_true(io_more(&c));
    assert_int_equal(io_take(&c, 2).size, 2);
    assert_false(io_more(&c));
    assert_true(io_ok(&c));
    assert_int_equal(io_take(&c, 0).size, 0);
    assert_true(io_ok(&c));

    /* Failing leaves it where it is, for ever. */
    for (size_t n = 0; n < 8; n++) {
        c = io_cursor_on(bytes, n);
        assert_true(io_u64(&c) == 0);
        assert_false(io_ok(&c));
        assert_false(io_more(&c));
        assert_ptr_equal(c.at, bytes);
        assert_int_equal(io_u8(&c), 0);
        assert_null(io_take(&c, 0).data);
        assert_true(io_varint(&c) == 0);
        assert_null(io_counted(&c).data);
        assert_ptr_equal(c.at, bytes);
    }
    c = io_cursor_on(bytes, sizeof bytes);
    assert_null(io_take(&c, SIZE_MAX).data);
    assert_false(io_ok(&c));
    c = io_cursor_on(bytes + 2, 3); /* three bytes counted, of which two are there */
    assert_null(io_counted(&c).data);
    assert_false(io_ok(&c));
    assert_ptr_equal(c.at, bytes + 2);
    c = io_cursor_on(bytes + 1, 3);
    assert_ptr_equal(io_counted(&c).data, bytes + 2);
    assert_true(io_ok(&c) && !io_more(&c));
    c = io_cursor_on(NULL, 0);
    assert_false(io_more(&c));
    assert_int_equal(io_take(&c, 0).size, 0);
    assert_true(io_ok(&c));
    assert_int_equal(io_u8(&c), 0);
    assert_false(io_ok(&c));
}

static void varints(void **state)
{
    (void)state;
    for (int bit = 0; bit < 64; bit++)
        for (int less = 0; less < 2; less++) {
            uint64_t value = ((uint64_t)1 << bit) - (uint64_t)less;
            io_buffer b = {0};
            io_put_varint(&b, value);
            assert_int_equal(b.size, value ? (size_t)(70 - __builtin_clzll(value)) / 7 : 1);
            io_cursor c = io_cursor_on(b.data, b.size);
            assert_true(io_varint(&c) == value && io_ok(&c) && !io_more(&c));
            for (size_t n = 0; n < b.size; n++) { /* cut short */
                c = io_cursor_on(b.data, n);
                assert_true(io_varint(&c) == 0 && !io_ok(&c) && c.at == b.data);
            }
            io_buffer_free(&b);
        }
    static const struct {
        uint8_t bytes[11];
        bool good;
        uint64_t value;
    } cases[] = {
        {{0x80, 0x00}, true, 0}, /* longer than needed */
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}, true, 0},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, true, UINT64_MAX},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, false, 0}, /* 65 bits */
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00},
         false,
         0}, /* 11 bytes */
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0x00}, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        io_cursor c = io_cursor_on(cases[i].bytes, 11);
        assert_true(io_varint(&c) == cases[i].value);
        assert_int_equal(io_ok(&c), cases[i].good);
    }
}

static void fields(void **state)
{
    (void)state;
    io_buffer b = {0};
    io_put_field_varint(&b, 1, 300);
    io_put_field_fixed32(&b, 2, 0xdeadbeef);
    io_put_field_bytes(&b, 536870911, "abc", 3);
    io_put_field_bytes(&b, 4, NULL, 0);
    io_put_varint(&b, 5 << 3 | IO_FIXED64);
    io_put_u64(&b, 0x0123456789abcdef);
    io_put_field_varint(&b, 6, UINT64_MAX);
    assert_false(b.failed);

    io_field f;
    io_cursor c = io_cursor_on(b.data, b.size);
    assert_true(io_next_field(&c, &f) && f.number == 1 && f.type == IO_VARINT && f.value == 300);
    assert_true(io_next_field(&c, &f) && f.number == 2 && f.type == IO_FIXED32);
    assert_true(f.value == 0xdeadbeef);
    assert_true(io_next_field(&c, &f) && f.number == 536870911 && f.type == IO_BYTES);
    assert_true(f.bytes.size == 3 && !memcmp(f.bytes.data, "abc", 3));
    assert_true(io_next_field(&c, &f) && f.number == 4 && f.bytes.size == 0);
    assert_true(io_next_field(&c, &f) && f.number == 5 && f.value == 0x0123456789abcdef);
    assert_true(io_next_field(&c, &f) && f.number == 6 && f.value == UINT64_MAX);
    assert_false(io_next_field(&c, &f));
    assert_true(io_ok(&c));

    /* Wherever it is cut, it ends or is damaged; no field goes beyond. */
    for (size_t n = 0; n < b.size; n++) {
        c = io_cursor_on(b.data, n);
        while (io_next_field(&c, &f)) assert_true(c.at <= c.end);
        assert_true(io_ok(&c) ? c.at == c.end : c.at < c.end);
    }
    io_buffer_free(&b);
}

static void damaged_fields(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[12];
        size_t size;
    } cases[] = {
        {{0x00, 0x01}, 2},                                                     /* number 0 */
        {{0x0b, 0x0c}, 2},                                                     /* a group */
        {{0x0e, 0x01}, 2},                                                     /* types there are */
        {{0x0f, 0x01}, 2},                                                     /* none of */
        {{0x08}, 1},                                                           /* no value */
        {{0x0a, 0x01}, 2},                                                     /* no bytes */
        {{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1}, 7},                          /* 4 GiB */
        {{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 11}, /* 2^64 - 1 */
        {{0x0d, 1, 2, 3}, 4},                                                  /* short fixed32 */
        {{0x09, 1, 2, 3, 4, 5, 6, 7}, 8},                                      /* short fixed64 */
        {{0x88, 0x80, 0x80, 0x80, 0x10, 0x00}, 6},                             /* number 2^29 + 1 */
        {{0x80}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        io_cursor c = io_cursor_on(cases[i].bytes, cases[i].size);
        io_field f;
        assert_false(io_next_field(&c, &f));
        assert_false(io_ok(&c));
        assert_false(io_next_field(&c, &f));
        assert_ptr_equal(c.at, cases[i].bytes);
        assert_true(f.number == 0 && f.value == 0 && !f.bytes.data);
    }
}

static void buffers(void **state)
{
    (void)state;
    io_buffer b = {0};
    io_put(&b, NULL, 0);
    assert_true(!b.data && !b.failed);
    io_put_u8(&b, 1);
    io_put_u16(&b, 0x0302);
    io_put_u32(&b, 0x07060504);
    io_put_u64(&b, 0x0f0e0d0c0b0a0908);
    for (size_t i = 0; i < 15; i++) assert_int_equal(b.data[i], i + 1);
    io_put_format(&b, "%s", "");
    io_put_format(&b, "%d-%s", 42, "x");
    assert_int_equal(b.size, 19);
    assert_memory_equal(b.data + 15, "42-x", 4);
    uint8_t *p = noise(100000, 3);
    for (size_t i = 0; i < 100000; i += 100) io_put(&b, p + i, 100);
    assert_int_equal(b.size, 19 + 100000);
    assert_memory_equal(b.data + 19, p, 100000);
    size_t size = b.size;
    io_put(&b, p, SIZE_MAX - 5); /* refused before a byte is touched */
    assert_true(b.failed);
    io_put_u8(&b, 1);
    io_put_format(&b, "more");
    assert_int_equal(b.size, size);
    io_buffer_free(&b);
    io_buffer_free(&b);

    ed_memory_fail_at(0, false);
    io_put(&b, p, 10);
    assert_true(b.failed && !b.size);
    failed_with(ED_OUT_OF_MEMORY, "out of memory");
    io_put(&b, p, 10); /* memory would be there again, but a part is missing */
    assert_true(b.failed && !b.size);
    io_buffer_free(&b);
    free(p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dtypes),  TEST(crc_vectors), TEST(crc_everywhere), TEST(digests), TEST(cursor),
        TEST(varints), TEST(fields),      TEST(damaged_fields), TEST(buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
