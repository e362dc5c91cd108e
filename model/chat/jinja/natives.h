#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/chat/jinja/runtime.h"

namespace millrace::model::jinja {

// The tables of built-in functions, one per file. Null where a name is unknown.
const Native* FindFilter(absl::string_view name);
const Native* FindTest(absl::string_view name);
const Native* FindStringMethod(absl::string_view name);
const Native* FindDictMethod(absl::string_view name);
const Native* FindListMethod(absl::string_view name);
const Native* FindTupleMethod(absl::string_view name);
const Native* FindFloatMethod(absl::string_view name);
const Native* FindLoopMethod(absl::string_view name);
const Native* FindCyclerMethod(absl::string_view name);
const Native* FindGlobal(absl::string_view name);

absl::Span<const Native> SplitMethods();
absl::Span<const Native> CharacterMethods();

absl::Span<const Native> TextFilters();
absl::Span<const Native> MarkupFilters();
absl::Span<const Native> SequenceFilters();
absl::Span<const Native> OrderFilters();
absl::Span<const Native> SelectionFilters();
absl::Span<const Native> NumberFilters();

}  // namespace millrace::model::jinja
