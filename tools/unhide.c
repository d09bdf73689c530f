/*
 * unhide OBJECT: makes the hidden names of a relocatable object visible, in place; the reverse of
 * objcopy --localize-hidden, which objcopy itself lacks. The tests' shared library is made so: the
 * library's own objects, with the private names to be found too.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool is_object(const Elf64_Ehdr *head, size_t size)
{
    return size >= sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_shoff <= size &&
           (size - head->e_shoff) / sizeof(Elf64_Shdr) >= 1;
}

/* Too many for the header are counted by the first section. */
static size_t section_count(const Elf64_Ehdr *head, const Elf64_Shdr *sections, size_t size)
{
    const size_t count = head->e_shnum ? head->e_shnum : sections[0].sh_size;
    const size_t room = (size - head->e_shoff) / sizeof *sections;
    return count < room ? count : room;
}

/* Those that the object only asks for (the bounds of its own sections) stay hidden. */
static void unhide(Elf64_Sym *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ELF64_ST_VISIBILITY(symbols[i].st_other) == STV_HIDDEN &&
            symbols[i].st_shndx != SHN_UNDEF)
            symbols[i].st_other = STV_DEFAULT;
}

int main(int argc, char **argv)
{
    struct stat file;
    int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
    if (fd < 0 || fstat(fd, &file) != 0) return perror("unhide"), 1;
    const size_t size = (size_t)file.st_size;
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) return perror("unhide"), 1;
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)bytes;
    if (!is_object(head, size)) return fprintf(stderr, "unhide: no ELF object\n"), 1;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(bytes + head->e_shoff);
    const size_t count = section_count(head, sections, size);
    for (size_t i = 0; i < count; i++) {
        const Elf64_Shdr *s = &sections[i];
        if (s->sh_type == SHT_SYMTAB && s->sh_offset <= size && s->sh_size <= size - s->sh_offset)
            unhide((Elf64_Sym *)(bytes + s->sh_offset), s->sh_size / sizeof(Elf64_Sym));
    }
    return munmap(bytes, size) != 0;
}
