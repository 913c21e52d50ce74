/* What every harness asks of messages: a failure says why, and what is said is plain text, a line for each line that
 * dts_diag_render() makes. */
#ifndef DTS_FUZZ_MESSAGES_H
#define DTS_FUZZ_MESSAGES_H

#include <stdlib.h>

#include "base/diag.h"

static inline void check_messages(const dts_diag *diag, dts_status status) {
    if (status != DTS_OK && dts_diag_errors(diag) == 0) {
        abort(); /* a failure without a word */
    }
    size_t lines = dts_diag_errors(diag) + dts_diag_warnings(diag) > dts_diag_count(diag) ? 1 : 0;
    for (size_t i = 0; i < dts_diag_count(diag); i++) {
        const dts_message *m = dts_diag_get(diag, i);
        const bool source = m->place.line_text != NULL && m->place.line > 0;
        lines += 1U + (m->help != NULL) + source + (source && m->caret > 0);
    }
    dts_text rendered = {0};
    dts_diag_render(diag, false, &rendered);
    for (size_t i = 0; i < rendered.length; i++) {
        const unsigned char c = (unsigned char)rendered.data[i];
        if (c == '\n' && lines > 0) {
            lines--;
        } else if (c < 0x20 || c == 0x7f) {
            abort(); /* a control character, or a line of the input's own */
        }
    }
    dts_text_free(&rendered);
}

#endif
