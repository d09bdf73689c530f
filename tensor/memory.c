#include "tensor/memory.h"
#include "tensor/thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/*
 * Sizes. Class c holds blocks of class_bytes(c) bytes, header included: 128, 160, 192, 224, 256,
 * 320, ... four steps to a power of two. The first MEMORY_SMALL_CLASSES (up to 7 KiB) are cached by
 * threads, the others by the process under a lock. A thread that caches more of a class than its
 * bound hands half of it to the process, so that what one thread makes and another frees comes
 * round.
 *
 * The process's cache gives up what has been in it for longest: where it would exceed the limit,
 * where live and cached bytes together would exceed twice the most that were live in this age or
 * the last, and what nobody wanted for an age. In an age, AGES times the bytes held are taken and
 * given: a loop that needs a block only once in so long pays a few percent to have it anew, and
 * memory that an earlier part of the program needed goes back. A request whose class is empty may
 * get a block of one of the next two classes, at most half as large again.
 *
 * Counts. A thread adds up its own changes and tells the process when they exceed 64 KiB, so the
 * hot path has no atomic.
 */

typedef struct memory_block {
    union {
        ed_buffer buffer;                         /* in use as a buffer */
        struct {                                  /* in a cache; in the process's: */
            struct memory_block *next, *previous; /* of its class */
            struct memory_block *newer, *older;   /* of all */
            int64_t freed;                        /* at this time of the clock */
        };
    };
    uint32_t class;
    uint32_t asked;           /* the class of the request, at most `class`: what live bytes count */
    struct memory_span *span; /* that it is cut from, or NULL */
} memory_block;

/* Where blocks of one class are cut from, see below. */
typedef struct memory_span {
    struct memory_span *next, *previous; /* of the class, those that can give a block */
    char *data;
    memory_block *back; /* blocks that came back */
    int cut, given;     /* blocks that were ever cut, and that are given now */
    bool has_holes;     /* whether a block ever came back */
} memory_span;

enum {
    HEADER = 64,
    CLASSES = MEMORY_SMALL_CLASSES + 140, /* more than the 2^47 bytes of the largest request */
    SMALL_BYTES = 2 << 20,                /* a thread's bound on what it caches of a class */
    REPORT_BYTES = 64 << 10,
    HUGE_BYTES = 4 << 20, /* from here on 2 MiB pages are asked for */
    HUGE_PAGE = 2 << 20,
    SPAN_FROM = 64 << 10, /* from here on blocks are cut from spans */
    SPAN_BYTES = 16 << 20,
    LARGE_BYTES = 256 << 20, /* from here on a request is compared with the machine */
    FRESH = 0xff,            /* fills what is fresh in test builds: a NaN in every float dtype */
    JUNK = 0xdb,             /* and what is freed */
    FRESH_BYTES = 64 << 10,  /* of a block that sanitizers watch: touching huge ones takes long */
    NEAR = 2,                /* classes above its own that serve a large request */
    AGES = 32,               /* see above */
    YOUNG_BYTES = 256 << 20, /* an age is no shorter than so many bytes */
    KEPT_BYTES = 32 << 20,   /* so much may be cached however little was live */
};

#ifdef EDDY_SANITIZED
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

_Static_assert(sizeof(memory_block) <= HEADER, "the header has 64 bytes");

static struct {
    pthread_mutex_t lock;
    memory_block *lists[CLASSES]; /* newest first */
    memory_block *newest, *oldest;
    int64_t cached, limit;
    int64_t clock;                        /* bytes taken from the cache and given to it, ever */
    int64_t age_begin, high, high_before; /* the most live bytes of this age, and of the last one */
    int64_t live, peak;
    memory_span *spans[CLASSES];
    int64_t plain[CLASSES]; /* bytes that the C library gave, of classes that spans may serve */
    int64_t fail_at;        /* allocations to go before one fails; negative: off */
    bool fail_repeat, fail_happened, fail_armed;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = 1 << 30, .fail_at = -1};

/*
 * The bound on what a thread caches of a class. 0: nothing is cached at all, by nobody. Then each
 * block comes from the system in the size that was asked for and goes back at once, so that
 * sanitizers and valgrind see who uses it when it is gone, or behind its end.
 */
static size_t small_bytes = SMALL_BYTES;

static uint32_t class_of(size_t bytes)
{
    if (bytes <= 128) return 0;
    int shift = 61 - __builtin_clzll(bytes - 1); /* a quarter of the power of two below */
    return (uint32_t)(4 * (shift - 5) + (int)((bytes - 1) >> shift) - 3);
}

static size_t class_bytes(uint32_t class)
{
    if (class == 0) return 128;
    int shift = (int)(class - 1) / 4 + 5;
    return (size_t)((class - 1) % 4 + 5) << shift;
}

/* A thread's own figures, which others read meanwhile. */
#define CHANGE(figure, by) __atomic_store_n(&(figure), (figure) + (by), __ATOMIC_RELAXED)

static void tell(thread_state *self)
{
    int64_t mine = self->live_bytes;
    int64_t live = __atomic_add_fetch(&process.live, mine, __ATOMIC_RELAXED);
    CHANGE(self->live_bytes, -mine);
    int64_t peak = __atomic_load_n(&process.peak, __ATOMIC_RELAXED);
    while (live > peak && !__atomic_compare_exchange_n(&process.peak, &peak, live, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static void count_bytes(thread_state *self, int64_t bytes)
{
    CHANGE(self->live_bytes, bytes);
    if (self->live_bytes > REPORT_BYTES || self->live_bytes < -REPORT_BYTES) tell(self);
}

static bool must_fail(void)
{
    if (__builtin_expect(!__atomic_load_n(&process.fail_armed, __ATOMIC_RELAXED), 1)) return false;
    int64_t left = __atomic_fetch_sub(&process.fail_at, 1, __ATOMIC_RELAXED);
    if (left > 0 || (left < 0 && !process.fail_repeat)) return false;
    process.fail_happened = true;
    return true;
}

/* ---- The system ------------------------------------------------------------------------------ */

/* Huge blocks are mapped, in whole 2 MiB pages: the C library would keep what it gets back. */
static bool is_mapped(uint32_t class)
{
    return small_bytes && class_bytes(class) >= HUGE_BYTES;
}

static size_t mapped_bytes(uint32_t class)
{
    return (class_bytes(class) + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

static void *map_pages(size_t bytes)
{
    char *all =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    const size_t before = -(uintptr_t)all & (HUGE_PAGE - 1);
    if (before) munmap(all, before);
    if (before != HUGE_PAGE) munmap(all + before + bytes, HUGE_PAGE - before);
    madvise(all + before, bytes, MADV_HUGEPAGE);
    return all + before;
}

/*
 * Large blocks are cut from spans, several of a class from one, for 2 MiB pages, too: far memory in
 * small pages is read a fifth more slowly. A class takes its first bytes from the C library, so
 * that a program that needs little doesn't touch a whole such page for it. What comes back to a
 * span goes to the system at once, but for the page with the header. From then on the span is to
 * get no more 2 MiB pages: the system would make them, in time, of those that are left, so that the
 * holes would be memory again.
 */
static bool is_cut(uint32_t class)
{
    return small_bytes && class_bytes(class) >= SPAN_FROM && class_bytes(class) < HUGE_BYTES;
}

static int span_blocks(uint32_t class)
{
    return (int)(SPAN_BYTES / class_bytes(class));
}

static void link_span(memory_span *span, uint32_t class)
{
    memory_span **first = &process.spans[class];
    span->previous = NULL;
    if ((span->next = *first)) span->next->previous = span;
    *first = span;
}

static void unlink_span(memory_span *span, uint32_t class)
{
    *(span->previous ? &span->previous->next : &process.spans[class]) = span->next;
    if (span->next) span->next->previous = span->previous;
}

static memory_span *new_span(uint32_t class)
{
    memory_span *span = calloc(1, sizeof *span);
    if (!span || !(span->data = map_pages(SPAN_BYTES))) {
        free(span);
        return NULL;
    }
    link_span(span, class);
    return span;
}

/* NULL while the class is to take from the C library, and without memory. */
static memory_block *from_span(uint32_t class)
{
    const size_t bytes = class_bytes(class);
    memory_block *block = NULL;
    pthread_mutex_lock(&process.lock);
    const bool plain = process.plain[class] < HUGE_PAGE;
    memory_span *span = plain ? NULL : process.spans[class];
    if (!plain && !span) span = new_span(class);
    if (span) {
        block = span->back;
        if (block)
            span->back = block->next;
        else
            block = (memory_block *)(span->data + (size_t)span->cut++ * bytes);
        if (++span->given == span_blocks(class)) unlink_span(span, class);
    } else {
        process.plain[class] += (int64_t)bytes;
    }
    pthread_mutex_unlock(&process.lock);
    if (block) block->span = span;
    return block;
}

/* Gives the block's pages to the system, but for those that have its header or others' bytes. */
static void drop_pages(memory_block *block)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)block;
    const uintptr_t begin = (at + HEADER + page - 1) / page * page;
    const uintptr_t end = (at + class_bytes(block->class)) / page * page;
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static void to_span(memory_block *block)
{
    const uint32_t class = block->class;
    memory_span *span = block->span;
    drop_pages(block);
    pthread_mutex_lock(&process.lock);
    if (!span->has_holes) madvise(span->data, SPAN_BYTES, MADV_NOHUGEPAGE);
    span->has_holes = true;
    if (span->given-- == span_blocks(class)) link_span(span, class);
    block->next = span->back;
    span->back = block;
    const bool unused = span->given == 0;
    if (unused) unlink_span(span, class);
    pthread_mutex_unlock(&process.lock);
    if (!unused) return;
    munmap(span->data, SPAN_BYTES);
    free(span);
}

static memory_block *from_system(uint32_t class, size_t asked)
{
    void *block = is_cut(class) ? from_span(class) : NULL;
    if (!block) {
        if (is_mapped(class))
            block = map_pages(mapped_bytes(class));
        else if (posix_memalign(&block, HEADER, small_bytes ? class_bytes(class) : asked) != 0)
            return NULL;
        if (block) ((memory_block *)block)->span = NULL;
    }
    if (block) ((memory_block *)block)->class = class;
    return block;
}

static void to_system(memory_block *block)
{
    if (block->span)
        to_span(block);
    else if (is_mapped(block->class))
        munmap(block, mapped_bytes(block->class));
    else
        free(block);
}

/* ---- The process's cache, under its lock ----------------------------------------------------- */

static void link_block(memory_block *block)
{
    memory_block **first = &process.lists[block->class];
    block->previous = NULL;
    if ((block->next = *first)) block->next->previous = block;
    *first = block;
    block->newer = NULL;
    if ((block->older = process.newest)) block->older->newer = block;
    process.newest = block;
    if (!process.oldest) process.oldest = block;
    process.cached += (int64_t)class_bytes(block->class);
    block->freed = process.clock += (int64_t)class_bytes(block->class);
}

static void unlink_block(memory_block *block)
{
    memory_block **from = block->previous ? &block->previous->next : &process.lists[block->class];
    if ((*from = block->next)) block->next->previous = block->previous;
    *(block->newer ? &block->newer->older : &process.newest) = block->older;
    *(block->older ? &block->older->newer : &process.oldest) = block->newer;
    process.cached -= (int64_t)class_bytes(block->class);
}

static int64_t age_bytes(int64_t live)
{
    return AGES * (live + process.cached) + YOUNG_BYTES;
}

/* What may be cached once `freed` bytes are live no more. */
static int64_t wanted_bytes(int64_t live, int64_t freed)
{
    if (process.clock - process.age_begin > age_bytes(live)) {
        process.age_begin = process.clock;
        process.high_before = process.high;
        process.high = 0;
    }
    if (process.high < live + freed) process.high = live + freed;
    const int64_t high = process.high > process.high_before ? process.high : process.high_before;
    const int64_t wanted = 2 * high - live;
    return wanted > KEPT_BYTES ? wanted : KEPT_BYTES;
}

/* Unlinks what is too much or too old; the chain of it, for free_chain without the lock. */
static memory_block *evict(int64_t limit, int64_t live)
{
    memory_block *chain = NULL;
    while (process.oldest &&
           (process.cached > limit || process.clock - process.oldest->freed > age_bytes(live))) {
        memory_block *block = process.oldest;
        unlink_block(block);
        block->next = chain;
        chain = block;
    }
    return chain;
}

static int64_t free_chain(memory_block *block)
{
    int64_t bytes = 0;
    for (memory_block *next; block; block = next) {
        next = block->next;
        bytes += (int64_t)class_bytes(block->class);
        to_system(block);
    }
    return bytes;
}

/* Takes up to `most` blocks of a class out of the process's cache onto `to`. */
static int take_shared(uint32_t class, int most, memory_list *to)
{
    int taken = 0;
    pthread_mutex_lock(&process.lock);
    for (memory_block *block; taken < most && (block = process.lists[class]); taken++) {
        unlink_block(block);
        process.clock += (int64_t)class_bytes(class);
        block->next = to->first;
        to->first = block;
        CHANGE(to->count, 1);
    }
    pthread_mutex_unlock(&process.lock);
    return taken;
}

/* A large block: of the class or, without one, of the next ones. */
static memory_block *take_large(uint32_t class)
{
    memory_block *block = NULL;
    pthread_mutex_lock(&process.lock);
    for (uint32_t c = class; c <= class + NEAR && c < CLASSES && !block; c++)
        block = process.lists[c];
    if (block) unlink_block(block);
    process.clock += (int64_t)class_bytes(class);
    pthread_mutex_unlock(&process.lock);
    return block;
}

static void give_shared(memory_block *block)
{
    const int64_t bytes = (int64_t)class_bytes(block->class);
    memory_block *chain = NULL;
    pthread_mutex_lock(&process.lock);
    const bool kept = bytes <= process.limit;
    if (kept) {
        const int64_t live = __atomic_load_n(&process.live, __ATOMIC_RELAXED);
        const int64_t wanted = wanted_bytes(live, bytes);
        link_block(block);
        chain = evict(wanted < process.limit ? wanted : process.limit, live);
    }
    pthread_mutex_unlock(&process.lock);
    if (!kept) to_system(block);
    free_chain(chain);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* A block for `asked` bytes, its header among them. */
static memory_block *take(thread_state *self, uint32_t class, size_t asked)
{
    if (class < MEMORY_SMALL_CLASSES) {
        memory_list *list = &self->small[class];
        if (list->first || take_shared(class, 16, list)) {
            memory_block *block = list->first;
            list->first = block->next;
            CHANGE(list->count, -1);
            return block;
        }
    } else {
        memory_block *block = take_large(class);
        if (block) return block;
    }
    return from_system(class, asked);
}

static void put_block(thread_state *self, memory_block *block)
{
    uint32_t class = block->class;
    if (HARD(small_bytes, 0)) memset((char *)block + HEADER, JUNK, class_bytes(class) - HEADER);
    if (class >= MEMORY_SMALL_CLASSES) {
        give_shared(block);
        return;
    }
    memory_list *list = &self->small[class];
    block->next = list->first;
    list->first = block;
    CHANGE(list->count, 1);
    if ((size_t)list->count * class_bytes(class) <= small_bytes) return;
    for (int half = (list->count + 1) / 2; half > 0; half--) {
        memory_block *old = list->first;
        list->first = old->next;
        CHANGE(list->count, -1);
        give_shared(old);
    }
}

/*
 * The system promises more than it has and kills who takes it at its word. So what would be more
 * than memory and swap, with what is held already, is not asked for.
 */
static bool exceeds_machine(const thread_state *self, size_t bytes)
{
    struct sysinfo machine;
    if (sysinfo(&machine) != 0) return false;
    int64_t all = (int64_t)((machine.totalram + machine.totalswap) * machine.mem_unit);
    int64_t held = __atomic_load_n(&process.live, __ATOMIC_RELAXED) + self->live_bytes;
    return (int64_t)bytes > all - held;
}

void *memory_alloc(size_t bytes)
{
    thread_state *self = thread_self();
    if (bytes > (size_t)1 << 47 || must_fail() ||
        (bytes >= LARGE_BYTES && exceeds_machine(self, bytes)))
        return ed_fail(ED_OUT_OF_MEMORY, "out of memory: cannot allocate %zu bytes", bytes);
    uint32_t class = class_of(bytes + HEADER);
    memory_block *block = take(self, class, bytes + HEADER);
    if (!block) return ed_fail(ED_OUT_OF_MEMORY, "out of memory: cannot allocate %zu bytes", bytes);
    block->asked = class;
    count_bytes(self, (int64_t)class_bytes(class));
    if (HARD(1, SANITIZED))
        memset((char *)block + HEADER, FRESH,
               SANITIZED && bytes > FRESH_BYTES ? FRESH_BYTES : bytes);
    return (char *)block + HEADER;
}

void *memory_zalloc(size_t bytes)
{
    void *data = memory_alloc(bytes);
    return data ? memset(data, 0, bytes) : NULL;
}

void *memory_grow(void *old, size_t old_bytes, size_t bytes)
{
    void *data = memory_alloc(bytes);
    if (!data) return NULL;
    if (old) memcpy(data, old, old_bytes < bytes ? old_bytes : bytes);
    memory_free(old);
    return data;
}

void memory_free(void *data)
{
    if (!data) return;
    memory_block *block = (memory_block *)((char *)data - HEADER);
    thread_state *self = thread_self();
    count_bytes(self, -(int64_t)class_bytes(block->asked));
    put_block(self, block);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

ed_buffer *memory_buffer(size_t bytes)
{
    char *data = memory_alloc(bytes);
    if (!data) return NULL;
    ed_buffer *buffer = (ed_buffer *)(data - HEADER);
    *buffer = (ed_buffer){.refs = 1, .data = data};
    return buffer;
}

ed_buffer *memory_buffer_wrap(void *data, void (*deleter)(void *, void *), void *user)
{
    ed_buffer *buffer = memory_buffer(0);
    if (!buffer) return NULL;
    buffer->data = data;
    buffer->deleter = deleter;
    buffer->user = user;
    return buffer;
}

void memory_buffer_destroy(ed_buffer *buffer)
{
    if (buffer->deleter) {
        thread_state *self = thread_self();
        const scope_guarded guarded = scope_guard(self);
        buffer->deleter(buffer->data, buffer->user);
        scope_unguard(self, guarded);
    }
    memory_free((char *)buffer + HEADER);
}

/* ---- Statistics ------------------------------------------------------------------------------ */

void *ed_memory_alloc(size_t bytes)
{
    return memory_zalloc(bytes);
}

void ed_memory_free(void *memory)
{
    memory_free(memory);
}

int64_t ed_memory_live(void)
{
    return __atomic_load_n(&process.live, __ATOMIC_RELAXED) + thread_self()->live_bytes;
}

void memory_count_tensor(int change)
{
    thread_state *self = thread_self();
    CHANGE(self->live_tensors, change);
}

static int64_t ended_tensors; /* of threads that have ended */

ed_memory ed_memory_stats(void)
{
    ed_memory memory = {0};
    tell(thread_self());
    for (thread_state *t = thread_lock_all(); t; t = t->next) {
        memory.live_tensors += __atomic_load_n(&t->live_tensors, __ATOMIC_RELAXED);
        memory.live_bytes += __atomic_load_n(&t->live_bytes, __ATOMIC_RELAXED);
        for (uint32_t c = 0; c < MEMORY_SMALL_CLASSES; c++)
            memory.cached_bytes +=
                __atomic_load_n(&t->small[c].count, __ATOMIC_RELAXED) * (int64_t)class_bytes(c);
    }
    memory.live_tensors += ended_tensors;
    thread_unlock_all();
    memory.live_bytes += __atomic_load_n(&process.live, __ATOMIC_RELAXED);
    memory.peak_bytes = __atomic_load_n(&process.peak, __ATOMIC_RELAXED);
    if (memory.peak_bytes < memory.live_bytes) memory.peak_bytes = memory.live_bytes;
    pthread_mutex_lock(&process.lock);
    memory.cached_bytes += process.cached;
    pthread_mutex_unlock(&process.lock);
    return memory;
}

void ed_memory_reset_peak(void)
{
    tell(thread_self());
    __atomic_store_n(&process.peak, __atomic_load_n(&process.live, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
}

static int64_t free_list(memory_list *list)
{
    memory_block *chain = list->first;
    list->first = NULL;
    CHANGE(list->count, -list->count);
    return free_chain(chain);
}

static int64_t free_shared(int64_t limit)
{
    pthread_mutex_lock(&process.lock);
    memory_block *chain = evict(limit, __atomic_load_n(&process.live, __ATOMIC_RELAXED));
    pthread_mutex_unlock(&process.lock);
    return free_chain(chain);
}

int64_t ed_memory_trim(void)
{
    thread_state *self = thread_self();
    int64_t freed = 0;
    for (int c = 0; c < MEMORY_SMALL_CLASSES; c++) freed += free_list(&self->small[c]);
    return freed + free_shared(0);
}

void ed_memory_set_cache_limit(int64_t bytes)
{
    if (bytes < 0 || !small_bytes) bytes = 0;
    pthread_mutex_lock(&process.lock);
    process.limit = bytes;
    pthread_mutex_unlock(&process.lock);
    free_shared(bytes);
}

void ed_memory_fail_at(int64_t n, bool repeat)
{
    process.fail_happened = false;
    process.fail_repeat = repeat;
    __atomic_store_n(&process.fail_at, n, __ATOMIC_RELAXED);
    __atomic_store_n(&process.fail_armed, n >= 0, __ATOMIC_RELAXED);
}

bool ed_memory_has_failed(void)
{
    return process.fail_happened;
}

void memory_thread_end(thread_state *self)
{
    tell(self);
    for (int c = 0; c < MEMORY_SMALL_CLASSES; c++) free_list(&self->small[c]);
    thread_lock_all(); /* who counts meanwhile must find them in one place */
    ended_tensors += self->live_tensors;
    self->live_tensors = 0;
    thread_unlock_all();
}

/* A child of fork has no thread that would unlock what others held. The floors above watch later,
 * so that their locks, within which memory is taken, come first. */
static void lock(void)
{
    pthread_mutex_lock(&process.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&process.lock);
}

__attribute__((constructor(101))) static void memory_begin(void)
{
    const char *cache = getenv("EDDY_CACHE");
    if (SANITIZED || (cache && !strcmp(cache, "0"))) process.limit = small_bytes = 0;
    pthread_atfork(lock, unlock, unlock);
}

/* A library that is unloaded, or a process that ends, leaves nothing behind. */
__attribute__((destructor(101))) static void memory_end(void)
{
    free_shared(0);
}
