#include "tensor/core.h"

static void list_destroy(void *object)
{
    ed_list *list = object;
    for (int64_t i = 0; i < list->size; i++) ed_release(list->items[i]);
    memory_free(list);
}

const object_class tensor_list_class = {.name = "list", .destroy = list_destroy};

ed_list *list_new(int64_t size)
{
    size_t bytes;
    if (size < 0 || !memory_mul((size_t)size, sizeof(ed_tensor *), &bytes))
        return ed_fail(ED_INVALID_ARGUMENT, "list: count must be >= 0, got %lld", (long long)size);
    ed_list *list = object_new(&tensor_list_class, sizeof *list + bytes);
    if (list) list->size = size;
    return list;
}

ed_list *ed_list_make(ed_tensor *const *tensors, int64_t count)
{
    for (int64_t i = 0; tensors && i < count; i++)
        if (!tensors[i]) {
            ed_fail(ED_INVALID_ARGUMENT, "list: entry %lld is NULL", text_nth(i));
            return error_explain_null(), NULL;
        }
    return ed_list_make_optional(tensors, count);
}

ed_list *ed_list_make_optional(ed_tensor *const *tensors, int64_t count)
{
    if (count && !tensors) return ed_fail(ED_INVALID_ARGUMENT, "list: tensors is NULL");
    ed_list *list = list_new(count);
    if (!list) return NULL;
    for (int64_t i = 0; i < count; i++) list->items[i] = ed_retain(tensors[i]);
    return scope_give(list);
}

int64_t ed_list_size(const ed_list *list)
{
    return list ? list->size : 0;
}

ed_tensor *ed_list_get(const ed_list *list, int64_t i)
{
    if (NULL_GIVEN("list_get", list)) return NULL;
    int64_t at = i < 0 ? i + list->size : i;
    if (at < 0 || at >= list->size)
        return ed_fail(ED_OUT_OF_RANGE, "list_get: index %lld is out of bounds for a list of %lld",
                       text_nth(i), (long long)list->size);
    return list->items[at];
}

ed_list *ed_list_concat(const ed_list *a, const ed_list *b)
{
    if (NULL_GIVEN("list_concat", a, b)) return NULL;
    ed_list *list = list_new(a->size + b->size);
    if (!list) return NULL;
    for (int64_t i = 0; i < a->size; i++) list->items[i] = ed_retain(a->items[i]);
    for (int64_t i = 0; i < b->size; i++) list->items[a->size + i] = ed_retain(b->items[i]);
    return scope_give(list);
}
