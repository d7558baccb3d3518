/* Counts how often each place of a target is passed, for the variants that are compiled with
 * -fsanitize-coverage=trace-pc, which every gcc and clang has; this file itself is compiled without
 * it. The counters stand where those of libFuzzer targets do, one for each place and no more than
 * are asked for, and are numbered in the order of the places' addresses. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <string.h>

/* Read by ddfuzz, and cleared before each run. */
__attribute__((section("__sancov_cntrs"), used)) uint8_t counters[DDFUZZ_PLACES];

enum { LONGEST_TEXT = 1 << 17 };

static uintptr_t text;
static size_t text_size;
/* For each address behind a call: the number of its place, from 1. */
static uint16_t number_at[LONGEST_TEXT];

void __sanitizer_cov_trace_pc(void);

/* The target of a call instruction that ends at `end`; 0 where none does. */
static uintptr_t called_before(uintptr_t end)
{
#if defined(__x86_64__)
	int32_t distance;
	const uint8_t *call = (const uint8_t *)(end - 5);
	if (*call != 0xe8)
		return 0;
	memcpy(&distance, call + 1, sizeof distance);
	return end + (uintptr_t)(intptr_t)distance;
#elif defined(__aarch64__)
	uint32_t call;
	memcpy(&call, (const void *)(end - 4), sizeof call);
	if (call >> 26 != 0x25)
		return 0;
	int32_t words = (int32_t)(call << 6) >> 6;
	return end - 4 + (uintptr_t)((intptr_t)words * 4);
#else
	(void)end;
	return 0;
#endif
}

/* The first module is the program itself. */
static int find_text(struct dl_phdr_info *module, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			text = module->dlpi_addr + segment->p_vaddr;
			text_size = segment->p_memsz;
			return 1;
		}
	}
	return 1;
}

__attribute__((constructor)) static void number_places(void)
{
	dl_iterate_phdr(find_text, NULL);
	if (text_size > LONGEST_TEXT)
		text_size = LONGEST_TEXT;
	unsigned number = 0;
	for (size_t at = 8; at < text_size && number < DDFUZZ_PLACES; at++)
		if (called_before(text + at) == (uintptr_t)__sanitizer_cov_trace_pc)
			number_at[at] = (uint16_t)++number;
}

/* Counts up to 255 and stays there. */
void __sanitizer_cov_trace_pc(void)
{
	size_t at = (uintptr_t)__builtin_return_address(0) - text;
	unsigned number = at < text_size ? number_at[at] : 0;
	if (number && counters[number - 1] != UINT8_MAX)
		counters[number - 1]++;
}
