#include "io/bytes.h"
#include "io/file.h"
#include "model/model_core.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Logs of epochs. The file is written anew after each epoch, so that it is always whole. They begin
 * with the first epoch: a training that goes on from a backup, which is known by then, keeps the
 * lines of the epochs before. */

typedef struct log_state {
    io_buffer text;
    int64_t columns; /* of a CSV file; 0: no line yet */
    bool begun;
} log_state;

static void log_destroy(void *state)
{
    io_buffer_free(&((log_state *)state)->text);
}

/* Drops the last lines whose epoch, behind `head`, is that one or a later one: a process that was
 * killed wrote them after its last save. */
static void drop_epochs(io_buffer *b, const char *head, int64_t epoch)
{
    const size_t length = strlen(head);
    while (b->size) {
        size_t start = b->size - 1;
        while (start && b->data[start - 1] != '\n') start--;
        char line[64] = "";
        memcpy(line, b->data + start, b->size - start < 63 ? b->size - start : 63);
        char *end;
        const long long number = strtoll(line + length, &end, 10);
        if (strncmp(line, head, length) || end == line + length || number < epoch) return;
        b->size = start;
    }
}

/* Begins with the file's present text, if lines are to be appended. */
static bool log_begin(const char *who, log_state *s, const char *filename, bool append,
                      const char *head, const ed_training *t)
{
    const bool goes_on = t->global_step > 0;
    if (!filename) return ed_fail(ED_INVALID_ARGUMENT, "%s: filename is NULL", who);
    io_buffer_free(&s->text);
    *s = (log_state){.begun = true};
    if ((!append && !goes_on) || !io_exists(filename)) return true;
    uint8_t *data;
    size_t size;
    if (!io_read_file(who, filename, (size_t)1 << 30, &data, &size)) return false;
    io_put(&s->text, data, size);
    memory_free(data);
    if (goes_on && !s->text.failed) drop_epochs(&s->text, head, t->epoch);
    s->columns = s->text.size > 0 ? -1 : 0;
    return true;
}

static void put_value(io_buffer *b, double value, const char *infinite)
{
    if (isfinite(value))
        io_put_format(b, "%.9g", value);
    else
        io_put_format(b, infinite, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static bool write_log(const char *who, const log_state *s, const char *filename)
{
    return !s->text.failed && io_write_file(who, filename, s->text.data, s->text.size);
}

typedef log_state csv_logger_state;

CALLBACK(csv_logger, CSV_LOGGER, 1, "writes a line of values for each epoch",
         .state_size = sizeof(log_state), .destroy = log_destroy)
{
    const csv_logger_options *o = options;
    log_state *s = state;
    if (training->event == ED_TRAIN_BEGIN) s->begun = false;
    if (training->event == ED_EPOCH_BEGIN && !s->begun)
        return log_begin("csv_logger", s, o->filename, o->append, "", training);
    if (training->event != ED_EPOCH_END) return true;
    if (!s->columns) {
        io_put_format(&s->text, "epoch");
        for (int64_t i = 0; i < training->count; i++)
            io_put_format(&s->text, "%s%s", o->separator, training->names[i]);
        io_put_format(&s->text, "\n");
        s->columns = training->count;
    }
    io_put_format(&s->text, "%lld", (long long)training->epoch);
    for (int64_t i = 0; i < training->count; i++) {
        io_put_format(&s->text, "%s", o->separator);
        put_value(&s->text, training->values[i], "%s");
    }
    io_put_format(&s->text, "\n");
    return write_log("csv_logger", s, o->filename);
}

typedef log_state json_logger_state;

CALLBACK(json_logger, JSON_LOGGER, 1, "writes a JSON object on a line for each epoch",
         .state_size = sizeof(log_state), .destroy = log_destroy)
{
    const json_logger_options *o = options;
    log_state *s = state;
    if (training->event == ED_TRAIN_BEGIN) s->begun = false;
    if (training->event == ED_EPOCH_BEGIN && !s->begun)
        return log_begin("json_logger", s, o->filename, o->append, "{\"epoch\": ", training);
    if (training->event != ED_EPOCH_END) return true;
    io_put_format(&s->text, "{\"epoch\": %lld", (long long)training->epoch);
    for (int64_t i = 0; i < training->count; i++) {
        io_put_format(&s->text, ", \"%s\": ", training->names[i]);
        put_value(&s->text, training->values[i], "\"%s\"");
    }
    io_put_format(&s->text, "}\n");
    return write_log("json_logger", s, o->filename);
}
