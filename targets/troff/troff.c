/* troff: formats text for a typesetter, as commands of a device.
 *
 * Words are filled into lines and adjusted; lines that begin with . or ' are requests:
 *   .br .bp .sp N .ce N .ti N .in N .ll N .po N .vs N .ps N .ft F .fi .nf
 * and escapes stand in the text: \fF \sN \h'N' \v'N' \l'N' \D'...' \w'TEXT' \o'TEXT' \(xx \u \d
 *
 * It has three bugs: in argument.c (reached from motions, rules, drawings, widths and
 * overstrikes), in font.c and in text.c. */
#include <string.h>

#include "../complain.h"
#include "../target.h"
#include "troff.h"

int target_main(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *newline;

	complain_as("troff");
	if (!text_tables()) {
		complain("out of memory");
		return 1;
	}
	font_begin();
	page_begin();
	for (const uint8_t *at = data; at < end; at = newline + 1) {
		struct text line = {at, 0};
		int ended;

		newline = memchr(at, '\n', (size_t)(end - at));
		ended = newline != NULL;
		if (!ended)
			newline = end - 1;
		line.length = (size_t)(newline - at) + !ended;
		if (line.length > 0 && (*at == '.' || *at == '\''))
			do_request(line);
		else
			set_text(line, ended);
	}
	page_end();
	return complaints() > 0;
}
