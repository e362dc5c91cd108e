#pragma once

#include "model/tokenizer/marked_text.h"

namespace millrace::model {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// The text in a normalisation form of Unicode (UAX #15), with the tables of
// ICU. ICU's own normaliser inserts each combining mark by moving those before
// it, which hostile text makes quadratic; here runs of marks are sorted.
MarkedText InUnicodeForm(const MarkedText& text, UnicodeForm form);

}  // namespace millrace::model
