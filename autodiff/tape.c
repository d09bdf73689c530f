#include "autodiff/tape.h"
#include <stdlib.h>
#include <string.h>

/* ---- Memory of nodes: chunks, freed all at once ---------------------------------------------- */

typedef struct tape_chunk {
    struct tape_chunk *next;
    size_t used, size;
    max_align_t data[];
} tape_chunk;

enum { FIRST_CHUNK = 4000, CHUNK = 65440 }; /* with headers, exactly a size class */

static void *chunk_alloc(ed_tape *tape, size_t bytes)
{
    bytes = (bytes + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    tape_chunk *chunk = tape->chunks;
    if (!chunk || chunk->used + bytes > chunk->size) {
        size_t size = chunk ? CHUNK : FIRST_CHUNK;
        if (size < bytes) size = bytes;
        chunk = memory_alloc(sizeof *chunk + size);
        if (!chunk) return NULL;
        *chunk = (tape_chunk){.next = tape->chunks, .size = size};
        tape->chunks = chunk;
    }
    void *data = (char *)chunk->data + chunk->used;
    chunk->used += bytes;
    return data;
}

/* ---- Ids and slots --------------------------------------------------------------------------- */

/*
 * Threads take ids in runs. Four neighbours share a cache line of the table, but the lines are
 * spread by a hash: otherwise the runs of several threads would collide.
 */
static tape_entry *find_slot(const ed_tape *tape, uint64_t id)
{
    size_t mask = tape->capacity - 1;
    size_t at = ((id >> 2) * 0x9e3779b97f4a7c15 >> 32 << 2 | (id & 3)) & mask;
    while (tape->entries[at].id && tape->entries[at].id != id) at = (at + 1) & mask;
    return &tape->entries[at];
}

static int32_t slot_of_id(const ed_tape *tape, uint64_t id)
{
    if (!tape->n_entries) return -1;
    const tape_entry *entry = find_slot(tape, id);
    return entry->id ? entry->slot : -1;
}

static bool grow_entries(ed_tape *tape)
{
    size_t old_capacity = tape->capacity, capacity = old_capacity ? 2 * old_capacity : HARD(2, 128);
    tape_entry *old = tape->entries, *entries = memory_zalloc(capacity * sizeof *entries);
    if (!entries) return false;
    tape->entries = entries;
    tape->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].id) *find_slot(tape, old[i].id) = old[i];
    memory_free(old);
    return true;
}

/* Maps an id to a slot. */
static bool set_slot(ed_tape *tape, uint64_t id, int32_t slot)
{
    if (2 * tape->n_entries >= tape->capacity && !grow_entries(tape)) return false;
    tape_entry *entry = find_slot(tape, id);
    tape->n_entries += !entry->id;
    *entry = (tape_entry){id, slot};
    return true;
}

static int32_t new_slot(ed_tape *tape, uint64_t id)
{
    if (tape->n_slots == INT32_MAX || !set_slot(tape, id, tape->n_slots)) return -1;
    return tape->n_slots++;
}

static bool remember_variable(ed_tape *tape, ed_tensor *v)
{
    if (tape->n_variables == tape->variable_capacity) {
        int64_t capacity = tape->variable_capacity ? 2 * tape->variable_capacity : HARD(1, 8);
        void *variables =
            memory_grow(tape->variables, (size_t)tape->n_variables * sizeof(ed_tensor *),
                        (size_t)capacity * sizeof(ed_tensor *));
        if (!variables) return false;
        tape->variables = variables;
        tape->variable_capacity = capacity;
    }
    tape->variables[tape->n_variables++] = ed_retain(v);
    return true;
}

/* Creates a slot for a tensor or variable that has none. */
static int32_t watch(ed_tape *tape, ed_tensor *x)
{
    int32_t slot = new_slot(tape, x->id);
    if (slot >= 0 && tensor_is_variable(x) &&
        !(remember_variable(tape, x) && set_slot(tape, tensor_value(x)->id, slot)))
        slot = -1;
    tape->broken |= slot < 0;
    return slot;
}

int32_t tape_slot_of(ed_tape *tape, const ed_tensor *x)
{
    if (!tensor_is_variable(x)) return slot_of_id(tape, x->id);
    uint64_t value = tensor_value(x)->id;
    int32_t slot = slot_of_id(tape, value);
    if (slot >= 0) return slot;
    slot = slot_of_id(tape, x->id);
    if (slot >= 0 && !set_slot(tape, value, slot)) tape->broken = true;
    return slot;
}

int32_t tape_slot_read(ed_tape *tape, ed_tensor *x)
{
    int32_t slot = tape_slot_of(tape, x);
    if (slot >= 0 || !tape->watches_accessed || !ed_variable_is_trainable(x) ||
        !ed_dtype_is_float(x->dtype))
        return slot;
    return watch(tape, x);
}

/* ---- Recording ------------------------------------------------------------------------------- */

/* A deep copy of the attributes, objects retained. */
static bool copy_attrs(ed_tape *tape, tape_node *node, const void *attrs)
{
    node->attrs = attrs;
    if (!node->op->attrs_size || attrs == node->op->defaults) return true;
    const ed_field *fields = node->op->attrs;
    const size_t size = node->op->attrs_size;
    void *copy = chunk_alloc(tape, schema_bytes(fields, size, attrs));
    node->attrs = copy ? schema_put(fields, size, attrs, copy) : NULL;
    return copy;
}

static void release_attrs(tape_node *node)
{
    if (node->attrs && node->attrs != node->op->defaults)
        schema_release(node->op->attrs, node->attrs);
    node->attrs = NULL;
}

void tape_release_node(tape_node *node)
{
    for (int i = 0; i < node->n_inputs + node->n_outputs; i++) {
        ed_release(node->saved[i]);
        node->saved[i] = NULL;
    }
    release_attrs(node);
}

static const ed_tensor *operand_or_output(const ed_call *call, size_t i)
{
    const size_t n = (size_t)call->n_inputs;
    return i < n ? call->inputs[i] : call->outputs[i - n];
}

/* One block of memory for the node and all its arrays. */
static tape_node *new_node(ed_tape *tape, const ed_call *call)
{
    size_t n = (size_t)(call->n_inputs + call->n_outputs), dims = 0;
    const size_t shapes = tape->forward ? n : (size_t)call->n_inputs;
    for (size_t i = 0; i < shapes; i++) dims += operand_or_output(call, i)->rank;
    char *at = chunk_alloc(tape, sizeof(tape_node) + n * (sizeof(ed_tensor *) + sizeof(int32_t)) +
                                     shapes * (sizeof(ed_ints) + sizeof(ed_dtype)) +
                                     dims * sizeof(int64_t));
    if (!at) return NULL;
    tape_node *node = (tape_node *)at;
    *node = (tape_node){.op = call->op, .n_inputs = call->n_inputs, .n_outputs = call->n_outputs};
    at += sizeof *node;
    node->saved = memset(at, 0, n * sizeof(ed_tensor *));
    node->shapes = (ed_ints *)(at += n * sizeof(ed_tensor *));
    int64_t *shape = (int64_t *)(at += shapes * sizeof(ed_ints));
    node->slots = (int32_t *)(at += dims * sizeof(int64_t));
    node->dtypes = (ed_dtype *)(at + n * sizeof(int32_t));
    for (size_t i = 0; i < shapes; i++) {
        const ed_tensor *x = operand_or_output(call, i);
        node->dtypes[i] = x->dtype;
        node->shapes[i] = (ed_ints){shape, x->rank};
        for (int d = 0; d < x->rank; d++) *shape++ = x->shape[d];
    }
    return node;
}

static void save(tape_node *node, const ed_call *call)
{
    const ed_operand *operand = call->op->operands, *end = operand + ED_MAX_OPERANDS;
    for (int i = 0; i < call->n_inputs; i++) {
        if (operand->saved) node->saved[i] = ed_retain(call->inputs[i]);
        if (operand + 1 < end && operand[1].name) operand++;
    }
    const ed_result *result = call->op->results;
    for (int i = 0; result && i < call->n_outputs; i++) {
        if (result->saved) node->saved[call->n_inputs + i] = ed_retain(call->outputs[i]);
        if (result[1].name) result++;
    }
}

static bool any_float_output(const ed_call *call)
{
    for (int i = 0; i < call->n_outputs; i++)
        if (ed_dtype_is_float(call->outputs[i]->dtype)) return true;
    return false;
}

/* Writes the operands' slots; returns whether any is tracked. Watches trainable variables that
 * the op reads, also if its result has no gradient. An operand that is only written is not read. */
static bool find_slots(ed_tape *tape, const ed_call *call, int32_t *slots)
{
    bool tracked = false;
    for (int i = 0; i < call->n_inputs; i++) {
        const bool counts = i >= call->n_writes && ed_dtype_is_float(call->inputs[i]->dtype);
        slots[i] = counts ? tape_slot_read(tape, call->operands[i]) : -1;
        tracked |= slots[i] >= 0;
    }
    return tracked;
}

static bool record(ed_tape *tape, const ed_call *call, const int32_t *slots)
{
    tape_node *node = new_node(tape, call);
    if (!node || !copy_attrs(tape, node, call->attrs)) return false;
    memcpy(node->slots, slots, (size_t)call->n_inputs * sizeof *slots);
    node->previous = tape->last;
    *(tape->last ? &tape->last->next : &tape->first) = node;
    tape->last = node;
    for (int i = 0; i < call->n_outputs; i++) {
        bool is_float = ed_dtype_is_float(call->outputs[i]->dtype);
        int32_t slot = is_float ? new_slot(tape, call->outputs[i]->id) : -1;
        node->slots[call->n_inputs + i] = slot;
        if (is_float && slot < 0) return false;
    }
    save(node, call);
    return true;
}

static void after(ed_listener *listener, const ed_call *call);
static void tape_destroy(void *object);

ed_tape *tape_of(ed_listener *listener)
{
    if (listener->after != after) return NULL;
    return (ed_tape *)((char *)listener - offsetof(ed_tape, listener));
}

static void after(ed_listener *listener, const ed_call *call)
{
    ed_tape *tape = tape_of(listener);
    if (__builtin_expect(__atomic_load_n(&tape->abandoned, __ATOMIC_ACQUIRE), 0)) {
        tape_destroy(tape);
        return;
    }
    /* Ops that only write, or stop gradients, are not part of a backward pass. */
    if (!call->n_outputs || call->op->flags & ED_OP_STOPS || tape->paused) return;
    int32_t some[ED_MAX_OPERANDS], *slots = some;
    if (call->n_inputs > ED_MAX_OPERANDS &&
        !(slots = memory_alloc((size_t)call->n_inputs * sizeof *slots))) {
        tape->broken = true;
        return;
    }
    if (find_slots(tape, call, slots) && any_float_output(call) && !record(tape, call, slots))
        tape->broken = true;
    if (slots != some) memory_free(slots);
}

/* ---- Creation and destruction ---------------------------------------------------------------- */

void tape_clear(ed_tape *tape)
{
    for (tape_node *node = tape->first; node; node = node->next) tape_release_node(node);
    tape->first = tape->last = NULL;
    while (tape->chunks) {
        tape_chunk *chunk = tape->chunks;
        tape->chunks = chunk->next;
        memory_free(chunk);
    }
    memory_free(tape->entries);
    tape->entries = NULL;
    tape->n_entries = tape->capacity = 0;
    tape->n_slots = 0;
    tape->broken = false;
}

static void forget_variables(ed_tape *tape)
{
    for (int64_t i = 0; i < tape->n_variables; i++) ed_release(tape->variables[i]);
    tape->n_variables = 0;
}

void tape_stop(ed_tape *tape)
{
    if (tape->recording) ed_unlisten(&tape->listener);
    tape->recording = false;
}

/* The owner's last act, when nobody finds it as an owner any more. Its other tapes belong to other
 * threads, and record nothing more. */
static void free_abandoned(thread_state *self)
{
    for (ed_listener *l = self->listeners, *outer; l; l = outer) {
        outer = l->outer;
        ed_tape *tape = tape_of(l);
        if (tape && __atomic_load_n(&tape->abandoned, __ATOMIC_ACQUIRE)) tape_destroy(tape);
    }
}

/* Leaves the tape to its owner; false if that has ended. */
static bool abandon(ed_tape *tape)
{
    thread_state *owner = thread_lock_all();
    while (owner && owner->serial != tape->owner) owner = owner->next;
    if (owner) {
        owner->at_end = free_abandoned;
        __atomic_store_n(&tape->abandoned, true, __ATOMIC_RELEASE);
    }
    thread_unlock_all();
    return owner != NULL;
}

/* Another thread can't remove it from the owner's listeners: the owner does so at its next op, or
 * when it ends. */
static void tape_destroy(void *object)
{
    ed_tape *tape = object;
    if (tape->recording && tape->owner != thread_self()->serial && abandon(tape)) return;
    tape_stop(tape);
    tape_clear(tape);
    forget_variables(tape);
    memory_free(tape->variables);
    memory_free(tape);
}

static const object_class tape_class = {.name = "tape", .destroy = tape_destroy};

ed_tape *ed_tape_begin_with(const ed_tape_options *options)
{
    ed_tape *tape = object_new(&tape_class, sizeof *tape);
    if (!tape || !scope_give(tape)) return NULL;
    tape->listener.after = after;
    tape->listener.differentiates = 1;
    tape->persistent = options && options->persistent;
    tape->watches_accessed = !(options && options->ignore_accessed_variables);
    tape->recording = true;
    tape->owner = thread_self()->serial;
    ed_listen(&tape->listener);
    return tape;
}

bool tape_is_ours(const ed_tape *tape, const char *what)
{
    if (!tape) return ed_fail(ED_INVALID_ARGUMENT, "%s: tape is NULL", what);
    if (!tape->recording || tape->owner == thread_self()->serial) return true;
    ed_fail(ED_FAILED_PRECONDITION, "%s: the tape records in another thread", what);
    return false;
}

static bool usable(const ed_tape *tape, const char *what)
{
    if (!tape_is_ours(tape, what)) return false;
    if (tape->consumed)
        return ed_fail(ED_FAILED_PRECONDITION,
                       "%s: the tape was consumed by its first gradient; begin a new or a "
                       "persistent one",
                       what),
               false;
    return true;
}

bool ed_tape_stop(ed_tape *tape)
{
    if (!usable(tape, "tape_stop")) return false;
    if (!tape->recording)
        return ed_fail(ED_FAILED_PRECONDITION, "tape_stop: the tape is not recording"), false;
    tape_stop(tape);
    return true;
}

bool ed_tape_resume(ed_tape *tape)
{
    if (!usable(tape, "tape_resume")) return false;
    if (tape->recording)
        return ed_fail(ED_FAILED_PRECONDITION, "tape_resume: the tape is already recording"), false;
    tape->recording = true;
    tape->owner = thread_self()->serial;
    ed_listen(&tape->listener);
    return true;
}

bool ed_tape_reset(ed_tape *tape)
{
    if (!usable(tape, "tape_reset")) return false;
    if (!tape->recording)
        return ed_fail(ED_FAILED_PRECONDITION, "tape_reset: the tape is not recording"), false;
    if (tape->walks)
        return ed_fail(ED_FAILED_PRECONDITION, "tape_reset: a gradient is being computed"), false;
    tape_clear(tape);
    forget_variables(tape);
    return true;
}

ed_tensor *ed_watch(ed_tape *tape, ed_tensor *x)
{
    if (!usable(tape, "watch")) return NULL;
    if (NULL_GIVEN("watch", x)) return NULL;
    if (!ed_dtype_is_float(x->dtype))
        return ed_fail(ED_INVALID_ARGUMENT, "watch: x must have a float dtype, got %s",
                       text_of_tensor(x).s);
    if (x->flags & TENSOR_WEAK)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "watch: x must be a tensor, got a plain number (see ed_scalar)");
    if (tape_slot_of(tape, x) >= 0) return x;
    return watch(tape, x) >= 0 ? x : NULL;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(ed_tensor *const *)a)->id, y = (*(ed_tensor *const *)b)->id;
    return x < y ? -1 : x > y;
}

ed_list *ed_tape_watched_variables(const ed_tape *tape)
{
    if (NULL_GIVEN("tape_watched_variables", tape)) return NULL;
    ed_list *list = list_new(tape->n_variables);
    if (!list) return NULL;
    for (int64_t i = 0; i < list->size; i++) list->items[i] = ed_retain(tape->variables[i]);
    qsort(list->items, (size_t)list->size, sizeof *list->items, by_id);
    return scope_give(list);
}
