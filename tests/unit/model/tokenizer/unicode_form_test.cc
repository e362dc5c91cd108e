// Normalised texts equal those of ICU's own normaliser, on random sequences of
// letters, marks and Hangul; a wrong order or composition differs.
#include "model/tokenizer/unicode_form.h"

#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "model/tokenizer/utf8.h"
#include "unicode/normalizer2.h"
#include "unicode/unistr.h"

namespace millrace::model {
namespace {

constexpr char32_t kCharacters[] = {
    U'a',   U'e',   U'A',   U' ',    0xE9,   0xC5,   0x212B, 0x301,  0x316,
    0x323,  0x302,  0x345,  0x327,   0x1100, 0x1161, 0x11A8, 0xAC00, 0x11A7,
    0x9C7,  0x9BE,  0xB47,  0xB57,   0x915,  0x93C,  0x958,  0x2126, 0xFB01,
    0x2ADC, 0x3042, 0x3099, 0x1D15E, 0xF71,  0xF72,  0xF73,  0x1E9B, 0x344,
    0xFDFA, 0x2000, 0x1F71, 0x4E2D,  0xF900, 0x110BA};

std::string ByIcu(const std::string& text, UnicodeForm form) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* tables =
      form == UnicodeForm::kNfc    ? icu::Normalizer2::getNFCInstance(error)
      : form == UnicodeForm::kNfd  ? icu::Normalizer2::getNFDInstance(error)
      : form == UnicodeForm::kNfkc ? icu::Normalizer2::getNFKCInstance(error)
                                   : icu::Normalizer2::getNFKDInstance(error);
  std::string out;
  tables->normalize(icu::UnicodeString::fromUTF8(text), error)
      .toUTF8String(out);
  EXPECT_TRUE(U_SUCCESS(error));
  return out;
}

TEST(UnicodeForm, EqualsIcu) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 40000; ++i) {
    std::string text;
    for (uint64_t left = random() % 8; left > 0; --left) {
      AppendUtf8(kCharacters[random() % std::size(kCharacters)], &text);
    }
    for (const UnicodeForm form : {UnicodeForm::kNfc, UnicodeForm::kNfd,
                                   UnicodeForm::kNfkc, UnicodeForm::kNfkd}) {
      const MarkedText marked =
          MarkedText::From(text, AddedTokenMode::kParseSpecial);
      ASSERT_EQ(InUnicodeForm(marked, form).text(), ByIcu(text, form))
          << absl::CHexEscape(text) << " form " << static_cast<int>(form);
    }
  }
}

// A composed character is trusted only if both parts are.
TEST(UnicodeForm, KeepsTheLeastTrust) {
  const TextSegment segments[] = {{"e", AddedTokenMode::kParseSpecial},
                                  {"\u0301", AddedTokenMode::kNone},
                                  {"x", AddedTokenMode::kParseSpecial}};
  const MarkedText out =
      InUnicodeForm(MarkedText::Join(segments), UnicodeForm::kNfc);
  ASSERT_EQ(out.text(), "\u00e9x");
  EXPECT_EQ(out.TrustAt(0), Trust::kNone);
  EXPECT_EQ(out.TrustAt(1), Trust::kNone);
  EXPECT_EQ(out.TrustAt(2), Trust::kFull);
}

}  // namespace
}  // namespace millrace::model
