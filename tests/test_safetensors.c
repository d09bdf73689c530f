/* safetensors: the scanner of its header, files good and bad with the reference's verdicts, what is
 * written, mapping, and what goes wrong: damage, memory, disks. */
#include "io/archive.h"
#include "io/json.h"
#include "tests/archives.h"
#include "tests/folders.h"
#include "tests/json.h"
#include <errno.h>

static char path[80];

/* A header written shorter: ' for ", and <U8 [2,3] 0 6> for what describes a tensor. */
static char *header_of(const char *brief)
{
    char *header = malloc(strlen(brief) * 8 + 1), *to = header;
    for (const char *p = brief; *p; p++) {
        char dtype[16], shape[64], from[32], end[32];
        int n = 0;
        if (*p == '<') sscanf(p, "<%15s %63s %31s %31[^>]>%n", dtype, shape, from, end, &n);
        if (n)
            to += sprintf(to, "{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%s,%s]}", dtype,
                          shape, from, end);
        else
            *to++ = *p == '\'' ? '"' : *p;
        p += n ? n - 1 : 0;
    }
    *to = 0;
    return header;
}

/* A file of such a header and so many bytes 1, 2, ... of elements. */
static void put_header(const char *brief, size_t elements)
{
    char *header = header_of(brief);
    uint64_t n = strlen(header);
    char *file = malloc(8 + n + elements);
    memcpy(file, &n, 8);
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < elements; i++) file[8 + n + i] = (char)(i + 1);
    write_bytes(path, file, 8 + n + elements);
    free(file);
    free(header);
}

static ed_archive *accepted(void)
{
    ed_archive *archive = ed_archive_open(path);
    if (!archive) fail_msg("%s", ed_error());
    assert_string_equal(ed_archive_format(archive), "safetensors");
    return archive;
}

/* Refused with a sentence that names the file. */
static void refused(const char *why)
{
    int64_t before = ed_memory_stats().live_bytes;
    void *file = archive_format_by_name("safetensors")->open(path);
    if (file) fail_msg("accepted; expected '%s'", why);
    assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
    if (!strstr(ed_error(), why) || !strstr(ed_error(), path))
        fail_msg("said '%s', expected '%s'", ed_error(), why);
    ed_clear_error();
    assert_null(ed_archive_open(path));
    assert_true(ed_failed());
    ed_clear_error();
    assert_int_equal(ed_memory_stats().live_bytes, before);
}

static int begin(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/file", folder_root);
    return 0;
}

static int end(void **state)
{
    unlink(path);
    return check_end(state);
}

/* ---- The scanner ----------------------------------------------------------------------------- */

/* Whether the text is one value and nothing else. */
static bool is_json(const char *given, size_t size)
{
    char *copy = malloc(size ? size : 1); /* of exactly its size: reading past it is noticed */
    memcpy(copy, given, size);
    io_json j = io_json_on(copy, size);
    io_json_skip(&j);
    bool good = io_json_end(&j);
    assert_true(good == !j.wrong);
    assert_true(j.at >= j.begin && j.at <= j.end);
    assert_int_equal(memcmp(copy, given, size), 0);
    free(copy);
    return good;
}

static void values(void **state)
{
    (void)state;
    char good[] = "{}|[]|[[]]|[{},[]]|{\"a\":1}|{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":true}|"
                  " \t\r\n[ 1 , 2 ]\n|0|-0|-1|10|0.5|1e5|1E+5|1.25e-05|false|\"\"|"
                  "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"|\"\x7f\xc2\x80\"|"
                  "[\"]\",\"}\"]|{\"\":0,\"\":0}|123456789012345678901234567890";
    char bad[] = " |{|[|}|]|{]|[}|[1,]|[,1]|[1 2]|{\"a\"}|{\"a\":}|{\"a\":1,}|{,}|{a:1}|{1:1}|"
                 "{'a':1}|[1]]|[[1]|01|-|-a|+1|.5|1.|1.e5|1e|1e+|0x1|1_0|NaN|Infinity|-Infinity|"
                 "nul|nulll|True|\"|\"\\\"|\"\\x\"|\"\\u12\"|\"\\u12g4\"|\"\\ud800\"|\"\\udc00\"|"
                 "\"\\ud800\\ud800\"|\"\\ud800x\"|\"\\ud800\\n\"|\"a\nb\"|\"\x01\"|// c\n1|"
                 "[1]/**/|\xef\xbb\xbf[]|[1];|{}{}|\"\\|\"\\u|[\"\\ud8";
    for (char *s = strtok(good, "|"); s; s = strtok(NULL, "|"))
        if (!is_json(s, strlen(s))) fail_msg("refused: %s", s);
    for (char *s = strtok(bad, "|"); s; s = strtok(NULL, "|"))
        if (is_json(s, strlen(s))) fail_msg("accepted: %s", s);
    assert_false(is_json("", 0));
    assert_false(is_json("1\0", 2));
    assert_false(is_json("\"\0\"", 3));
    assert_false(is_json("\0", 1));
}

static void depth(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    static char given[2 * MANY];
    for (int n = 1; n <= 130; n++) {
        memset(given, '[', (size_t)n);
        memset(given + n, ']', (size_t)n);
        assert_true(is_json(given, 2 * (size_t)n) == (n <= 128));
    }
    memset(given, '[', MANY);
    assert_false(is_json(given, MANY));
    assert_false(is_json(given, 100));
    for (int i = 0; i < MANY; i += 5) memcpy(given + i, "{\"a\":", 5);
    assert_false(is_json(given, MANY));
}

/* A character wherever it may stand: ASCII is gone through by eights. */
static void everywhere(const char *s, bool good)
{
    for (size_t before = 0; before < 20; before++)
        for (size_t after = 0; after < 10; after++) {
            size_t n = before + strlen(s) + after;
            char *given = malloc(n);
            memset(given, 'x', n);
            memcpy(given + before, s, strlen(s));
            if (io_is_utf8(given, n) != good)
                fail_msg("%s with %d before and %d behind", s, (int)before, (int)after);
            free(given);
        }
}

static void utf8(void **state)
{
    (void)state;
    char texts_good[] = "a|\x7f|\xc2\x80|\xdf\xbf|\xe0\xa0\x80|\xed\x9f\xbf|\xee\x80\x80|"
                        "\xef\xbf\xbf|\xf0\x90\x80\x80|\xf4\x8f\xbf\xbf";
    char texts_bad[] = "\x80|\xbf|\xc0\x80|\xc1\xbf|\xc2|\xc2\x41|\xe0\x9f\xbf|\xe0\xa0|"
                       "\xed\xa0\x80|\xed\xbf\xbf|\xf0\x8f\xbf\xbf|\xf4\x90\x80\x80|"
                       "\xf5\x80\x80\x80|\xf0\x90\x80|\xff|\xfe|\xe2\x28\xa1|\xf0\x28\x8c\xbc";
    for (char *s = strtok(texts_good, "|"); s; s = strtok(NULL, "|")) everywhere(s, true);
    for (char *s = strtok(texts_bad, "|"); s; s = strtok(NULL, "|")) everywhere(s, false);
    assert_true(io_is_utf8("", 0));
    assert_true(io_is_utf8("a\0b", 3));
}

static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *given, *meant;
        size_t size;
    } cases[] = {{"\"\"", "", 0},
                 {"\"abc\"", "abc", 3},
                 {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
                 {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\uFFFF\"",
                  "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbf", 13},
                 {"\"\\uD800\\uDC00\\udbff\\udfff\"", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},
                 {"\"a\\u0000b\"", "a\0b", 3},
                 {"\"\xe6\x97\xa5\"", "\xe6\x97\xa5", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char given[64];
        strcpy(given, cases[i].given);
        io_json j = io_json_on(given, strlen(given));
        io_span found;
        assert_true(io_json_text(&j, &found));
        assert_true(io_json_end(&j));
        assert_int_equal(found.size, cases[i].size);
        assert_memory_equal(found.data, cases[i].meant, found.size);
        assert_int_equal(found.data[found.size], 0);
    }
    /* Back: what is put is read as it was. */
    for (int c = 1; c < 256; c++) {
        char given[] = {'<', (char)c, '>', 0};
        if (c >= 0x80) memcpy(given + 1, "\xc3\xa9", 3);
        io_buffer b = {0};
        io_put_json_text(&b, given);
        io_json j = io_json_on((char *)b.data, b.size);
        io_span found;
        assert_true(io_json_text(&j, &found) && io_json_end(&j));
        assert_string_equal((const char *)found.data, given);
        io_buffer_free(&b);
    }
    io_buffer b = {0};
    io_put_json_text(&b, "\x1f\"\\\n/\x7f");
    assert_int_equal(b.size, 16);
    assert_memory_equal(b.data, "\"\\u001f\\\"\\\\\\n/\x7f\"", 16);
    io_buffer_free(&b);
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        bool good;
        uint64_t value;
    } cases[] = {{"0", true, 0},
                 {"7", true, 7},
                 {"18446744073709551615", true, UINT64_MAX},
                 {"18446744073709551616", false, 0},
                 {"184467440737095516150", false, 0},
                 {"00", false, 0},
                 {"-1", false, 0},
                 {"1.0", false, 0},
                 {"1e0", false, 0},
                 {"\"1\"", false, 0},
                 {"null", false, 0},
                 {"", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char given[32];
        strcpy(given, cases[i].given);
        io_json j = io_json_on(given, strlen(given));
        uint64_t value;
        bool good = io_json_unsigned(&j, &value);
        assert_true(good == cases[i].good && good == !j.wrong);
        if (good) assert_true(value == cases[i].value);
        /* It stays failed. */
        io_span found;
        if (!good) assert_false(io_json_text(&j, &found) || io_json_skip(&j) || io_json_end(&j));
    }
}

/* ---- The reference's verdicts ---------------------------------------------------------------- */

/* What is stricter here, and by which sentence of the format. */
static const struct {
    const char *name, *why;
} stricter[] = {
    {"duplicate_metadata_key", "duplicate keys are disallowed"},
    {"duplicate_name_same", "duplicate keys are disallowed"},
    {"entry_as_list", "a tensor is described by an object"},
    {"json_leading_newline", "the header begins with {"},
    {"json_leading_space", "the header begins with {"},
    {"zero_with_huge_dim", "none: an extent of 2^63 is more than a shape can say here"},
};

static bool is_stricter(const char *file)
{
    for (size_t i = 0; i < sizeof stricter / sizeof *stricter; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.safetensors", stricter[i].name);
        if (!strcmp(file, name)) return true;
    }
    return false;
}

/* The dtype's name here, told apart by the blanks around it. */
static bool is_our_name(const char *dtype, const char *ours)
{
    static const char pairs[] =
        " BOOL bool F4 float4_e2m1fn F6_E2M3 float6_e2m3 F6_E3M2 float6_e3m2 U8 uint8 I8 int8 "
        "F8_E5M2 float8_e5m2 F8_E4M3 float8_e4m3fn F8_E8M0 float8_e8m0 F8_E4M3FNUZ float8_e4m3fnuz "
        "F8_E5M2FNUZ float8_e5m2fnuz I16 int16 U16 uint16 F16 float16 BF16 bfloat16 I32 int32 "
        "U32 uint32 F32 float32 C64 complex64 F64 float64 I64 int64 U64 uint64 ";
    char both[64];
    snprintf(both, sizeof both, " %s %s ", dtype, ours);
    return strstr(pairs, both);
}

typedef struct gathered {
    size_t size;
    unsigned char bytes[1 << 18];
} gathered;

static bool gather(void *user, const void *data, size_t size)
{
    gathered *g = user;
    assert_true(g->size + size <= sizeof g->bytes);
    memcpy(g->bytes + g->size, data, size);
    g->size += size;
    return true;
}

/* The tensor of the entry has these bytes, or there can be none. */
static void same_tensor(ed_archive *archive, int64_t i, const archive_entry *entry,
                        const gathered *g)
{
    ed_tensor *t = ed_archive_tensor(archive, i);
    if (!io_dtype_to(entry->dtype) || entry->rank > ED_MAX_RANK) {
        assert_null(t);
        assert_int_equal(ed_error_kind(), ED_UNIMPLEMENTED);
        ed_clear_error();
        return;
    }
    if (!t) fail_msg("%s", ed_error());
    assert_int_equal(ed_dtype_of(t), io_dtype_to(entry->dtype));
    assert_int_equal(ed_rank(t), entry->rank);
    for (int d = 0; d < entry->rank; d++) assert_int_equal(ed_dim(t, d), entry->shape[d]);
    const unsigned char *data = ed_data(t);
    for (size_t k = 0; k < g->size; k++)
        assert_int_equal(data[k], entry->dtype == IO_BOOL ? g->bytes[k] != 0 : g->bytes[k]);
}

/* Entry i is member k of the record. */
static void same_entry(ed_archive *archive, int64_t i, const json *tensors, int64_t k)
{
    static gathered g;
    const json *e = json_at(tensors, k), *shape = json_get(e, "shape");
    archive_entry entry = archive_format_by_name("safetensors")->entry(archive_file(archive), i);
    assert_int_equal(entry.name_size, json_key_size(tensors, k));
    assert_memory_equal(entry.name, json_key(tensors, k), entry.name_size);
    assert_true(is_our_name(json_text(json_get(e, "dtype")), ed_archive_dtype(archive, i)));
    assert_int_equal(entry.rank, json_count(shape));
    for (int d = 0; d < entry.rank; d++)
        assert_int_equal(entry.shape[d], json_int(json_at(shape, d)));
    assert_int_equal(ed_archive_bytes(archive, i), json_int(json_get(e, "bytes")));
    g.size = 0;
    assert_true(
        archive_format_by_name("safetensors")->stream(archive_file(archive), i, gather, &g));
    assert_int_equal(g.size, ed_archive_bytes(archive, i));
    if (json_get(e, "b64")) { /* one large tensor has none; its file is written again below */
        size_t size;
        const void *bytes = json_base64(json_get(e, "b64"), &size);
        assert_int_equal(g.size, size);
        assert_memory_equal(g.bytes, bytes, size);
    }
    assert_true(ed_archive_verify(archive, i));
    same_tensor(archive, i, &entry, &g);
}

/* The record has the tensors in the order of names. */
static int64_t place_of(ed_archive *archive, const json *tensors, int64_t k)
{
    for (int64_t i = 0; i < ed_archive_count(archive); i++) {
        archive_entry entry =
            archive_format_by_name("safetensors")->entry(archive_file(archive), i);
        if (entry.name_size == json_key_size(tensors, k) &&
            !memcmp(entry.name, json_key(tensors, k), entry.name_size))
            return i;
    }
    fail_msg("there is no tensor '%s'", json_key(tensors, k));
    return -1;
}

static void same_archive(ed_archive *archive, const json *record)
{
    const json *tensors = json_get(record, "tensors");
    const json *metadata = json_get(json_get(record, "opened"), "metadata");
    assert_int_equal(ed_archive_count(archive), json_count(tensors));
    for (int64_t k = 0; k < json_count(tensors); k++)
        same_entry(archive, place_of(archive, tensors, k), tensors, k);
    for (int64_t k = 0; json_kind_of(metadata) == JSON_OBJECT && k < json_count(metadata); k++) {
        const char *found = ed_archive_metadata(archive, json_key(metadata, k));
        assert_non_null(found);
        assert_string_equal(found, json_text(json_at(metadata, k)));
    }
    assert_null(ed_archive_metadata(archive, "no such key"));
}

/* Whether the reference accepts the file; the same is to be seen here, exceptions apart. */
static bool verdict(const char *folder, const char *name, const json *record)
{
    ED_SCOPE;
    char real[512];
    snprintf(real, sizeof real, "%s/%s", folder, name);
    bool good = json_get(record, "tensors"), may_open = good && !is_stricter(name);
    void *direct = archive_format_by_name("safetensors")->open(real);
    if (!direct == may_open) fail_msg("%s: %s", real, direct ? "accepted" : ed_error());
    if (!direct) assert_int_equal(ed_error_kind(), ED_DATA_LOSS);
    ed_release(direct);
    ed_clear_error();
    ed_archive *archive = ed_archive_open(real);
    assert_true(!archive == !may_open);
    if (archive) same_archive(archive, record);
    ed_clear_error();
    return good;
}

static void verdicts(void **state)
{
    (void)state;
    char folder[256], file[300];
    snprintf(folder, sizeof folder, "%s/tf/made/safetensors", data_folder());
    snprintf(file, sizeof file, "%s/verdicts.json", folder);
    json *all = json_read_file(file);
    const json *files = json_get(all, "files");
    int64_t good = 0;
    for (int64_t k = 0; k < json_count(files); k++)
        good += verdict(folder, json_key(files, k), json_at(files, k));
    assert_int_equal(json_count(files), 106);
    assert_int_equal(good, 27);
    json_free(all);
}

/* The metadata taken out of a file, and its header padded as it must be then. */
static void without_metadata(char *file, char *metadata, size_t *size)
{
    uint64_t old, new;
    memcpy(&old, file, 8);
    char *behind = strstr(metadata, "},") + 2, *elements = file + 8 + old;
    size_t n = *size - 8 - old;
    char *kept = memcpy(malloc(n), elements, n);
    memmove(metadata, behind, (size_t)(elements - behind));
    char *end = elements - (behind - metadata);
    while (end[-1] == ' ') end--;
    while ((end - file) % 8) *end++ = ' ';
    new = (uint64_t)(end - file - 8);
    memcpy(file, &new, 8);
    memcpy(end, kept, n);
    free(kept);
    *size = 8 + new + n;
}

/* What the library wrote is written again byte for byte; its metadata are not kept. */
static void as_the_library(void **state)
{
    (void)state;
    const char *data = data_folder();
    static const char *const names[] = {
        "made/safetensors/by_library_big", "made/safetensors/by_library_many",
        "made/safetensors/by_library_nothing", "safetensors/jfk-codes", "safetensors/multi_layer"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        ED_SCOPE;
        char real[512];
        snprintf(real, sizeof real, "%s/tf/%s.safetensors", data, names[k]);
        ed_archive *archive = ed_archive_open(real);
        assert_non_null(archive);
        archive_item items[64];
        int64_t count = ed_archive_count(archive);
        for (int64_t i = 0; i < count; i++) items[i] = archive_item_of(archive, count - 1 - i);
        assert_true(write_items("safetensors", path, items, count));
        size_t size, written;
        char *theirs = read_bytes(real, &size), *ours = read_bytes(path, &written);
        char *metadata = memmem(theirs, size, "\"__metadata__\":{", 16);
        if (metadata) without_metadata(theirs, metadata, &size);
        assert_int_equal(size, written);
        assert_memory_equal(theirs, ours, size);
        free(theirs);
        free(ours);
    }
}

/* ---- Headers --------------------------------------------------------------------------------- */

static void headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int elements;
        const char *why; /* NULL: good */
    } cases[] = {
        {"{}", 0, NULL},
        {"{'a':<U8 [4] 0 4>}", 4, NULL},
        {"{'a':<U8 [4] 0 4>}   \n\t", 4, NULL},
        {"{'a':<U8 [4] 0 4>,'b':<F32 [] 4 8>}", 8, NULL},
        {"{'b':<F32 [] 4 8>,'a':<U8 [4] 0 4>}", 8, NULL},
        {"{'a':{'\\u0064type':'\\u00558','shape':[0],'data_offsets':[0,0]}}", 0, NULL},
        {"{'a':{'x':[{}],'dtype':'U8','shape':[0],'data_offsets':[0,0],'x':1}}", 0, NULL},
        {"{'a':<F4 [2] 0 1>}", 1, NULL},
        {"{'a':<F6_E3M2 [4] 0 3>}", 3, NULL},
        {"{'__metadata__':null}", 0, NULL},
        {"{'a':<U8 [4] 0 4>}", 3, "invalid data_offsets [0, 4] for 3 bytes"},
        {"{'a':<U8 [4] 0 4>}", 5, "1 bytes at its end"},
        {"{'a':<U8 [4] 1 5>}", 5, "leaves a gap"},
        {"{'a':<U8 [4] 0 5>}", 5, "has 5 bytes, but its shape requires 4"},
        {"{'a':<U8 [0] 1 0>}", 0, "invalid data_offsets [1, 0] for 0 bytes"},
        {"{'a':<U8 [2] 0 2>,'b':<U8 [2] 1 3>}", 3, "overlaps"},
        {"{'a':<U8 [2] 0 2>,'a':<U8 [2] 2 4>}", 4, "two tensors have the name 'a'"},
        {"{'a':<F4 [1] 0 1>}", 1, "not a number of whole bytes"},
        {"{'a':<U8 [4294967296,4294967296,0] 0 0>}", 0, "overflows"},
        {"{'a':<U8 [9223372036854775808] 0 0>}", 0, "exceeds 63 bits"},
        {"{'a':<U8 [18446744073709551616] 0 0>}", 0, "not a 64-bit integer"},
        {"{'a':<U8 [9] 0 9223372036854775807>}", 9, "for 9 bytes"},
        {"{'a':<U8 [4] 18446744073709551612 0>}", 0, "invalid data_offsets"},
        {"{'a':<U9 [4] 0 4>}", 4, "unknown dtype 'U9'"},
        {"{'a':{'dtype':'U8','shape':[0]}}", 0, "missing"},
        {"{'a':{'dtype':'U8','shape':[0],'shape':[0]}}", 0, "duplicate field"},
        {"{'a':{'data_offsets':[0,0,0]}}", 0, "two offsets"},
        {"{'a':{'data_offsets':[0]}}", 0, "expected ','"},
        {"{'a':{'shape':0}}", 0, "expected an array"},
        {"{'a':[]}", 0, "expected an object"},
        {"{'a':1}", 0, "expected an object"},
        {"{1:1}", 0, "expected a string"},
        {"{'__metadata__':{'a':'b'},'__metadata__':{}}", 0, "duplicate metadata"},
        {"{'__metadata__':null,'__metadata__':null}", 0, "duplicate metadata"},
        {"{'__metadata__':{'a':'b','c':'d','a':'e'}}", 0, "duplicate key 'a'"},
        {"{'__metadata__':{'a':1}}", 0, "expected a string"},
        {"{'__metadata__':[]}", 0, "expected an object"},
        {"{}{}", 0, "after the last bracket"},
        {"{} x", 0, "after the last bracket"},
        {"{", 0, "byte 1 of its header: expected a string"},
        {" {}", 0, "does not begin with '{'"},
        {"", 0, "does not begin with '{'"},
        {"{'\xff':1}", 0, "byte 2 of its header: it is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ED_SCOPE;
        put_header(cases[i].header, (size_t)cases[i].elements);
        if (cases[i].why)
            refused(cases[i].why);
        else
            accepted();
    }
    write_bytes(path, "\2\0\0\0\0\0\0", 7);
    refused("too short");
    write_bytes(path, "\3\0\0\0\0\0\0\0{}", 10);
    refused("unexpected end of file in its header");
    write_bytes(path, "\1\xe1\xf5\5\0\0\0\0{}", 10);
    refused("100000001 bytes; at most 100000000 are allowed");
    write_bytes(path, "\2\0\0\0\0\0\0\x80{}", 10);
    refused("are allowed");
    unlink(path);
    assert_null(archive_format_by_name("safetensors")->open(path));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void layout(void **state)
{
    (void)state;
    ED_SCOPE;
    assert_true(write_safetensors(path, "b", ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2)), "u",
                                  ed_constant(ED_VALUES(uint8_t, 3), ED_SHAPE(1)), "a\"/\n\xc3\xa9",
                                  ed_constant(ED_VALUES(int64_t, -1), ED_SHAPE()), "a",
                                  ed_constant(ED_VALUES(float, 0), ED_SHAPE(3, 0))));
    static const char header[] =
        "{\"a\\\"/\\n\xc3\xa9\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[8,8]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
        "\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[16,17]}}";
    static const unsigned char elements[] = {255, 255, 255, 255, 255, 255, 255,  255, 0,
                                             0,   128, 63,  0,   0,   0,   0x40, 3};
    size_t size, n = strlen(header), padded = (n + 7) / 8 * 8;
    assert_true(padded > n);
    unsigned char *bytes = read_bytes(path, &size);
    uint64_t length;
    memcpy(&length, bytes, 8);
    assert_int_equal(length, padded);
    assert_int_equal(size, 8 + padded + sizeof elements);
    assert_memory_equal(bytes + 8, header, n);
    for (size_t i = n; i < padded; i++) assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + padded, elements, sizeof elements);
    free(bytes);

    assert_true(write_safetensors(path));
    bytes = read_bytes(path, &size);
    assert_int_equal(size, 16);
    assert_memory_equal(bytes, "\10\0\0\0\0\0\0\0{}      ", 16);
    free(bytes);
}

static void not_written(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1), ED_SHAPE(1));
    write_bytes(path, "old", 3);
    assert_false(write_safetensors(path, "__metadata__", x));
    assert_error("the name is reserved");
    assert_false(write_safetensors(path, "\xff", x));
    assert_error("not UTF-8");
    static const int64_t shape[] = {2};
    archive_item item = {
        .name = "x", .dtype = IO_COMPLEX128, .rank = 1, .shape = shape, .bytes = 32, .tensor = x};
    assert_false(write_items("safetensors", path, &item, 1));
    failed_with(ED_UNIMPLEMENTED, "complex128");
    item.dtype = IO_FLOAT4_E2M1FN; /* one a byte, as others have it */
    item.bytes = 2;
    assert_false(write_items("safetensors", path, &item, 1));
    ed_clear_error();
    item.dtype = IO_FLOAT32; /* says 8, hands 4 */
    item.bytes = 8;
    assert_false(write_items("safetensors", path, &item, 1));
    ed_clear_error();
    enum { LIMIT = 100000000 };
    char *name = malloc(LIMIT + 1);
    memset(name, 'n', LIMIT);
    name[LIMIT] = 0;
    assert_false(write_safetensors(path, name, x));
    assert_error("100000000 are allowed");
    free(name);
    size_t size;
    unsigned char *bytes = read_bytes(path, &size);
    assert_int_equal(size, 3);
    free(bytes);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Mapped where aligned, else copied; either outlives the archive and the file's name. */
static void mapping(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *kept[3];
    static const char brief[] = "{'a':<U16 [2] 0 4>,'b':<F32 [1] 4 8>,'c':<U8 [1] 8 9>,"
                                "'d':<F32 [1] 9 13>,'e':<BOOL [2] 13 15>}   ";
    char *header = header_of(brief);
    assert_int_equal(strlen(header) % 4, 0);
    free(header);
    put_header(brief, 15);
    {
        ED_SCOPE;
        ed_archive *archive = accepted();
        for (int i = 0; i < 3; i++) kept[i] = ed_keep(ed_archive_tensor(archive, i + 1));
        ed_tensor *e = ed_archive_get(archive, "e");
        assert_int_equal(((const uint8_t *)ed_data(e))[0], 1);
        assert_int_equal(((const uint8_t *)ed_data(e))[1], 1);
        assert_ptr_equal(kept[0]->buffer, kept[1]->buffer);
        assert_non_null(kept[0]->buffer->deleter);
        assert_null(kept[2]->buffer->deleter);
        assert_false(tensor_is_sole(kept[0]));
    }
    unlink(path);
    static const unsigned char expected_bytes[] = {5, 6, 7, 8, 9, 10, 11, 12, 13};
    assert_memory_equal(ed_data(kept[0]), expected_bytes, 4);
    assert_memory_equal(ed_data(kept[1]), expected_bytes + 4, 1);
    assert_memory_equal(ed_data(kept[2]), expected_bytes + 5, 4);
    /* A variable that begins with it is written in memory of its own: the map can't be. */
    ed_tensor *v = ed_variable(kept[0]);
    assert_non_null(variable_write(v)->data);
    memset(variable_write(v)->data, 0, 4);
    assert_memory_equal(ed_data(kept[0]), expected_bytes, 4);
}

/* Larger than any piece in which it is gone through: out and in without memory of its size. */
static void large(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { ROWS = 3000, COLUMNS = 1001 };
    ed_tensor *x = scope_give(tensor_new(ED_UINT16, 2, (int64_t[]){ROWS, COLUMNS}));
    for (int64_t i = 0; i < x->size; i++) ((uint16_t *)x->data)[i] = (uint16_t)(i * 40503 >> 7);
    ed_tensor *t =
        scope_give(tensor_view(x, 2, (int64_t[]){COLUMNS, ROWS}, (int64_t[]){1, COLUMNS}, 0));
    uint16_t *turned = malloc((size_t)x->size * 2);
    tensor_pack(t, turned);
    int64_t before = ed_memory_stats().live_bytes;
    ed_memory_reset_peak();
    assert_true(write_safetensors(path, "x", x, "t", t));
    ed_archive *archive = accepted();
    const void *expected[] = {turned, x->data};
    for (int i = 0; i < 2; i++) {
        char digits[33];
        io_digest_text(io_digest_of(expected[i], (size_t)x->size * 2), digits);
        assert_string_equal(ed_archive_digest(archive, i), digits);
        assert_true(ed_archive_verify(archive, i));
        assert_memory_equal(ed_data(ed_archive_tensor(archive, i)), expected[i], x->size * 2);
    }
    assert_true(ed_memory_stats().peak_bytes - before < 2 << 20);
    free(turned);
}

/* ---- Damage, memory, disks ------------------------------------------------------------------- */

static const char small[] = "{'__metadata__':{'k':'v'},'a':<F32 [2,1] 0 8>,"
                            "'b':<BOOL [3] 8 11>,'\\u00e9':<U8 [] 11 12>}";

/* Opens the file and asks for all there is: good or a kept error. */
static bool read_all(void)
{
    ED_SCOPE;
    ed_archive *archive = ed_archive_open(path);
    if (!archive) return false;
    for (int64_t i = 0; i < ed_archive_count(archive); i++) {
        if (!ed_archive_name(archive, i) || !ed_archive_verify(archive, i)) return false;
        if (!ed_archive_digest(archive, i)) return false;
        ed_tensor *t = ed_archive_tensor(archive, i);
        if (!t || !ed_data(t)) return false;
        assert_int_equal(ed_size(t) * (int64_t)dtype_size(ed_dtype_of(t)),
                         ed_archive_bytes(archive, i));
    }
    ed_archive_metadata(archive, "k");
    return true;
}

static void damage(void **state)
{
    (void)state;
    put_header(small, 12);
    size_t size;
    unsigned char *good = read_bytes(path, &size), *bad = malloc(size + 1);
    assert_true(read_all());
    for (size_t n = 0; n < size; n++) { /* every truncation, and a byte more */
        write_bytes(path, good, n);
        refused("");
    }
    good[size] = 0;
    write_bytes(path, good, size + 1);
    refused("1 bytes at its end");
    int readable = 0;
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(bad, good, size);
            bad[at] ^= (unsigned char)(1 << bit);
            write_bytes(path, bad, size);
            bool read = read_all();
            assert_true(read != ed_failed());
            readable += read;
            ed_clear_error();
        }
    /* Elements, names and metadata have no checksum; the rest is noticed. */
    assert_true(readable > 12 * 8 && readable < 40 * 8);
    free(good);
    free(bad);
}

/* Pieces of headers put together at random, the length being right: read or refused. */
static void mutations(void **state)
{
    (void)state;
    enum { PIECES = 31, ROUNDS = 20000 };
    char texts[] =
        "{|}|[|]|,|:|'|\\|\\u00e9|\\ud83d|0|1|-1|1e|12|null|'a'|'b':|'dtype':'U8'|"
        "'shape':[1]|'data_offsets':[0,1]| |\n|\xff|\xc3\xa9|'__metadata__':|{'k':'v'}|"
        "'x':<U8 [1] 0 1>,|'y':<F32 [0,2] 0 0>,|18446744073709551615|9223372036854775807";
    const char *pieces[PIECES], *next = strtok(texts, "|");
    for (int i = 0; i < PIECES; i++, next = strtok(NULL, "|")) pieces[i] = next;
    char *whole = header_of("{'__metadata__':{'k':'v'},'a':<U8 [1] 0 1>,'\\u00e9':<F32 [] 1 5>}");
    uint64_t random = 12345;
    int read = 0, refusals = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char brief[800];
        strcpy(brief, whole);
        for (int changes = round % 5; changes >= 0; changes--) {
            random = random * 6364136223846793005 + 1442695040888963407;
            size_t n = strlen(brief), at = (size_t)(random >> 33) % n, cut = (random >> 20) % 4;
            const char *piece = pieces[(random >> 40) % PIECES];
            if (cut > n - at) cut = n - at;
            if (random >> 63) piece = "";
            memmove(brief + at + strlen(piece), brief + at + cut, n - at - cut + 1);
            memcpy(brief + at, piece, strlen(piece));
        }
        put_header(brief, round % 7 ? 5 : (size_t)(round % 10));
        bool good = read_all();
        assert_true(good != ed_failed());
        if (!good && ed_error_kind() != ED_UNIMPLEMENTED && ed_error_kind() != ED_DATA_LOSS)
            fail_msg("%s: %s", brief, ed_error());
        read += good;
        refusals += !good;
        ed_clear_error();
    }
    free(whole);
    assert_true(read > ROUNDS / 50 && refusals > ROUNDS / 2);
}

static void no_memory(void **state)
{
    (void)state;
    put_header(small, 12);
    for (int repeat = 0; repeat < 2; repeat++) {
        int n = 0;
        while (!succeeds_without(n, repeat, read_all)) n++;
        assert_true(n > 15);
    }
    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1, 2, 3, 4), ED_SHAPE(2, 2));
    int64_t by_columns[] = {1, 2};
    ed_tensor *t = scope_give(tensor_view(x, 2, x->shape, by_columns, 0));
    unlink(path);
    int n = 0;
    for (;; n++) {
        ed_memory_fail_at(n, n % 2);
        bool good = write_safetensors(path, "x", x, "t", t);
        ed_memory_fail_at(-1, false);
        if (good) break;
        assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
        ed_clear_error();
        if (!access(path, F_OK)) accepted(); /* not there, or whole */
        unlink(path);
    }
    assert_true(n > 4);
    ed_tensor *back = ed_archive_get(accepted(), "t");
    static const float transposed[] = {1, 3, 2, 4};
    assert_memory_equal(ed_data(back), transposed, sizeof transposed);
}

/* A header costs memory by its own size, whatever it holds. */
static void memory_is_bounded(void **state)
{
    (void)state;
    /* Two megabytes of these, %x being a number that grows, between a beginning and an end. */
    static const struct {
        const char *begin, *repeated, *end;
        bool good;
        int most; /* bytes of memory for one of the header */
    } kinds[] = {
        {"{'a':<U8 [0] 0 0>", ",'%x':<U8 [0] 0 0>", "}", true, 4},
        {"{'a':<U8 [0] 0 0>", ",'a':<U8 [0] 0 0>", "}", false, 4},
        {"{'a':{'data_offsets':[0,0],'dtype':'U8','shape':[0", ",0", "]}}", true, 6},
        {"{'__metadata__':{'a':''", ",'%x':''", "}}", true, 4},
        {"{'a':{'x':", "[", "", false, 1},
        {"{'a':{'x':", "{'':", "", false, 1},
    };
    char *given = malloc(4 << 20), next[64];
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        ED_SCOPE;
        char *one = header_of(kinds[kind].repeated);
        size_t n = (size_t)sprintf(given, "%s", kinds[kind].begin);
        for (; n < 2 << 20; n += strlen(next)) {
            snprintf(next, sizeof next, one, (unsigned)n);
            memcpy(given + n, next, strlen(next));
        }
        strcpy(given + n, kinds[kind].end);
        put_header(given, 0);
        int64_t size = (int64_t)n, before = ed_memory_stats().live_bytes;
        ed_memory_reset_peak();
        ed_archive *archive = ed_archive_open(path);
        int64_t most = ed_memory_stats().peak_bytes - before;
        if (!archive == kinds[kind].good) fail_msg("kind %d: %s", (int)kind, ed_error());
        ed_clear_error();
        if (most > kinds[kind].most * size + (1 << 20))
            fail_msg("kind %d: %lld bytes for a header of %lld", (int)kind, (long long)most,
                     (long long)size);
        free(one);
    }
    free(given);
    /* A length without a header behind it. */
    write_bytes(path, "\0\xe1\xf5\5\0\0\0\0{}", 10);
    int64_t before = ed_memory_stats().live_bytes;
    ed_memory_reset_peak();
    refused("unexpected end of file in its header");
    assert_true(ed_memory_stats().peak_bytes - before < 200000);
}

static void failing_disk(void **state)
{
    (void)state;
    put_header(small, 12);
    int failures = 0;
    for (int64_t n = 0;; n++) {
        io_fault(IO_CALL_READ, n, EIO, true);
        bool good = read_all();
        io_fault(IO_CALL_ANY, -1, 0, false);
        if (good) break;
        failed_with(ED_IO, path);
        failures++;
    }
    assert_true(failures >= 4);

    ED_SCOPE;
    ed_tensor *x = ed_constant(ED_VALUES(float, 1, 2), ED_SHAPE(2));
    static const int errors[] = {ENOSPC, EIO, EACCES};
    write_bytes(path, "old", 3);
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (int64_t n = 0;; n++) {
            io_fault(IO_CALL_ANY, n, errors[e], false);
            bool good = write_safetensors(path, "x", x);
            bool reached = io_fault_count() > n;
            io_fault(IO_CALL_ANY, -1, 0, false);
            if (!reached) {
                assert_true(good);
                write_bytes(path, "old", 3);
                break;
            }
            size_t size;
            unsigned char *bytes = read_bytes(path, &size);
            assert_true(good || ed_error_kind() == ED_IO);
            assert_true(size == 3 || size > 16); /* the old one or the new one whole */
            if (good) assert_true(size > 16);
            free(bytes);
            if (size != 3) write_bytes(path, "old", 3);
            ed_clear_error();
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(values),        TEST(depth),       TEST(utf8),           TEST(texts),
        TEST(whole_numbers), TEST(verdicts),    TEST(as_the_library), TEST(headers),
        TEST(layout),        TEST(not_written), TEST(mapping),        TEST(large),
        TEST(damage),        TEST(mutations),   TEST(no_memory),      TEST(memory_is_bounded),
        TEST(failing_disk)};
    return cmocka_run_group_tests_name("safetensors", tests, folder_begin, folder_end);
}
