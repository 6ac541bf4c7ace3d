/* symbols_table.c: see symbols_table.h. */
#include "symbols_table.h"

#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

/* Of symbols at one address those that know their size come last, where the search finds them. */
static int table_compare_entries(const void *a, const void *b)
{
    const struct symbols_entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return strcmp(y->name, x->name);
}

static bool is_function(const GElf_Sym *symbol, const char *name)
{
    int type = GELF_ST_TYPE(symbol->st_info);
    return name && *name && symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

void symbols_table_read(struct symbols_table *table, Dwfl_Module *module)
{
    table->read = true;
    int n = dwfl_module_getsymtab(module);
    if (n <= 0)
        return;
    table->entry = base_calloc((size_t)n, sizeof *table->entry);
    table->read = table->entry != NULL;
    for (int i = 0; table->entry && i < n; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (is_function(&symbol, name))
            table->entry[table->n++] = (struct symbols_entry){address, symbol.st_size, name};
    }
    if (table->entry && table->n > 1)
        qsort(table->entry, table->n, sizeof *table->entry, table_compare_entries);
}

const char *symbols_table_find(const struct symbols_table *table, uint64_t address,
                               uint64_t *distance)
{
    size_t low = 0, high = table->n;
    while (low < high) { /* the first symbol that starts after the address */
        size_t middle = low + (high - low) / 2;
        if (table->entry[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct symbols_entry *entry = &table->entry[low - 1];
    *distance = address - entry->start;
    return entry->size == 0 || *distance < entry->size ? entry->name : NULL;
}

void symbols_table_free(struct symbols_table *table)
{
    free(table->entry);
    *table = (struct symbols_table){0};
}
