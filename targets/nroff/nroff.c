/* nroff: formats text for a typewriter.
 *
 * Words are filled into lines and adjusted; lines that begin with . or ' are requests:
 *   .br .sp N .ce N .ti N .in N .ll N .fi .nf .ad .na .ft F .nr X N .ds X TEXT .de X … ..
 * and escapes stand in the text: \fB \h'N' \v'N' \l'N' \D'l N 0' \(bu \e \- \& \" \$1 \*X \nX
 *
 * It has three bugs: in number.c (reached from motions, rules, drawings and requests), and in
 * input.c lone 8-bit characters and arguments outside of a macro. */
#include "../complain.h"
#include "../target.h"
#include "nroff.h"

int target_main(const uint8_t *data, size_t size)
{
	struct text line;

	complain_as("nroff");
	if (!input_tables()) {
		complain("out of memory");
		return 1;
	}
	input_begin(data, size);
	forget_names();
	expand_begin();
	text_begin();
	fill_begin();
	while (next_line(&line)) {
		line = expand(line);
		if (line.length > 0 && (*line.at == '.' || *line.at == '\''))
			do_request(line);
		else
			set_text(line);
	}
	break_line();
	return complaints() > 0;
}
