#include "io/bytes.h"
#include "io/file.h"
#include "model/model_core.h"
#include <math.h>
#include <string.h>

/* Logs of epochs. The file is written anew after each epoch, so that it is always whole. */

typedef struct log_state {
    io_buffer text;
    int64_t columns; /* of a CSV file; 0: no line yet */
} log_state;

static void log_destroy(void *state)
{
    io_buffer_free(&((log_state *)state)->text);
}

/* Begins with the file's present text, if lines are to be appended. */
static bool log_begin(const char *who, log_state *s, const char *filename, bool append)
{
    if (!filename) return ed_fail(ED_INVALID_ARGUMENT, "%s: filename is NULL", who);
    io_buffer_free(&s->text);
    *s = (log_state){.columns = 0};
    if (!append || !io_exists(filename)) return true;
    uint8_t *data;
    size_t size;
    if (!io_read_file(who, filename, (size_t)1 << 30, &data, &size)) return false;
    io_put(&s->text, data, size);
    memory_free(data);
    s->columns = size > 0 ? -1 : 0;
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
    if (training->event == ED_TRAIN_BEGIN)
        return log_begin("csv_logger", s, o->filename, o->append);
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
    if (training->event == ED_TRAIN_BEGIN)
        return log_begin("json_logger", s, o->filename, o->append);
    if (training->event != ED_EPOCH_END) return true;
    io_put_format(&s->text, "{\"epoch\": %lld", (long long)training->epoch);
    for (int64_t i = 0; i < training->count; i++) {
        io_put_format(&s->text, ", \"%s\": ", training->names[i]);
        put_value(&s->text, training->values[i], "\"%s\"");
    }
    io_put_format(&s->text, "}\n");
    return write_log("json_logger", s, o->filename);
}
