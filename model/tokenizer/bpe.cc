#include "model/tokenizer/bpe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/error.h"
#include "model/tokenizer/utf8.h"

namespace millrace::model {
namespace {

// Words worth remembering within one call, and how many.
constexpr size_t kSeenWordBytesMax = 48;
constexpr size_t kSeenWordsMax = 16384;

uint64_t PairKey(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
         static_cast<uint32_t>(right);
}

// For std::push_heap, which keeps the greatest in front.
bool Later(const Bpe::Workspace::Candidate& a,
           const Bpe::Workspace::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, const Options& options)
    : vocabulary_(vocabulary), options_(options) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = vocabulary.Id(absl::StrFormat("<0x%02X>", byte));
  }
}

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::FromMerges(
    const Vocabulary& vocabulary, const Merges& merges, const Options& options,
    absl::string_view object) {
  auto out = std::unique_ptr<Bpe>(new Bpe(vocabulary, options));
  out->merges_.reserve(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    joined.assign(left).append(right);
    const TokenId left_id = vocabulary.Id(left);
    const TokenId right_id = vocabulary.Id(right);
    const TokenId merged = vocabulary.Id(joined);
    if (left_id < 0 || right_id < 0 || merged < 0) {
      return InputError(
          object, absl::StrCat("merge ", i, " ('", Printable(left), "' and '",
                               Printable(right),
                               "') has a part or a result that is no token"));
    }
    // Of equal pairs the last one counts.
    out->merges_[PairKey(left_id, right_id)] = {static_cast<uint32_t>(i),
                                                merged};
  }
  return out;
}

std::unique_ptr<Bpe> Bpe::FromScores(const Vocabulary& vocabulary,
                                     std::vector<uint32_t> score_ranks,
                                     const Options& options) {
  auto out = std::unique_ptr<Bpe>(new Bpe(vocabulary, options));
  out->score_ranks_ = std::move(score_ranks);
  for (size_t id = 0; id < out->score_ranks_.size(); ++id) {
    const std::string* token = vocabulary.Find(static_cast<TokenId>(id));
    if (out->score_ranks_[id] != kNoRank && token != nullptr) {
      out->token_bytes_max_ = std::max(out->token_bytes_max_, token->size());
    }
  }
  return out;
}

void Bpe::KeepFromText(const absl::flat_hash_set<TokenId>& tokens) {
  kept_from_text_ = tokens;
  absl::erase_if(merges_, [&](const auto& merge) {
    return tokens.contains(merge.second.merged);
  });
  for (const TokenId id : tokens) {
    if (static_cast<size_t>(id) < score_ranks_.size()) {
      score_ranks_[static_cast<size_t>(id)] = kNoRank;
    }
  }
}

TokenId Bpe::Find(absl::string_view text) const {
  const TokenId id = vocabulary_.Id(text);
  return kept_from_text_.contains(id) ? -1 : id;
}

void Bpe::Encode(absl::string_view word, Workspace* workspace,
                 std::vector<TokenId>* out) const {
  if (word.size() > kSeenWordBytesMax) {
    EncodeUncached(word, workspace, out);
    return;
  }
  const auto found = workspace->seen.find(word);
  if (found != workspace->seen.end()) {
    out->insert(out->end(), found->second.begin(), found->second.end());
    return;
  }
  const auto start = static_cast<std::ptrdiff_t>(out->size());
  EncodeUncached(word, workspace, out);
  if (workspace->seen.size() < kSeenWordsMax) {
    workspace->seen.emplace(
        std::string(word),
        std::vector<TokenId>(out->begin() + start, out->end()));
  }
}

void Bpe::EncodeUncached(absl::string_view word, Workspace* workspace,
                         std::vector<TokenId>* out) const {
  if (options_.ignore_merges) {
    if (const TokenId id = Find(word); id >= 0) {
      out->push_back(id);
      return;
    }
  }
  Start(word, workspace);
  MergeAll(word, workspace);
  for (const Workspace::Symbol& symbol : workspace->symbols) {
    if (symbol.end > symbol.begin) {
      out->push_back(symbol.id);
    }
  }
}

bool Bpe::AppendBytes(absl::string_view character, Workspace* workspace,
                      uint32_t begin) const {
  const auto known = [&](char byte) {
    return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
  };
  if (!options_.byte_fallback ||
      !std::all_of(character.begin(), character.end(), known)) {
    return false;
  }
  for (const char byte : character) {
    workspace->symbols.push_back(
        {.id = byte_ids_[static_cast<unsigned char>(byte)],
         .begin = begin,
         .end = begin + 1});
    ++begin;
  }
  return true;
}

// One symbol per character, unknown ones as their bytes or the unknown token,
// which comes when something else follows it.
void Bpe::Start(absl::string_view word, Workspace* workspace) const {
  auto& symbols = workspace->symbols;
  symbols.clear();
  uint32_t unknown_begin = 0;
  uint32_t unknown_end = 0;
  const auto flush_unknown = [&] {
    if (unknown_end > unknown_begin) {
      symbols.push_back({.id = *options_.unknown,
                         .begin = unknown_begin,
                         .end = unknown_end});
    }
    unknown_begin = unknown_end;
  };
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = CodePointAt(word, at).bytes;
    const absl::string_view character = word.substr(at, bytes);
    const auto begin = static_cast<uint32_t>(at);
    const auto end = static_cast<uint32_t>(at + bytes);
    at += bytes;
    if (const TokenId id = Find(character); id >= 0) {
      flush_unknown();
      symbols.push_back({.id = id, .begin = begin, .end = end});
      continue;
    }
    if (AppendBytes(character, workspace, begin) || !options_.unknown) {
      continue;
    }
    if (unknown_end == unknown_begin || !options_.fuse_unknown) {
      flush_unknown();
      unknown_begin = begin;
    }
    unknown_end = end;
  }
  flush_unknown();
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
  }
}

void Bpe::Propose(absl::string_view word, int32_t left,
                  Workspace* workspace) const {
  if (left < 0) {
    return;
  }
  const Workspace::Symbol& a = workspace->symbols[static_cast<size_t>(left)];
  if (a.next < 0) {
    return;
  }
  const Workspace::Symbol& b = workspace->symbols[static_cast<size_t>(a.next)];
  Merge merge{kNoRank, -1};
  if (score_ranks_.empty()) {
    const auto found = merges_.find(PairKey(a.id, b.id));
    if (found != merges_.end()) {
      merge = found->second;
    }
  } else if (a.end == b.begin && b.end - a.begin <= token_bytes_max_) {
    merge.merged = vocabulary_.Id(word.substr(a.begin, b.end - a.begin));
    if (merge.merged >= 0) {
      merge.rank = score_ranks_[static_cast<size_t>(merge.merged)];
    }
  }
  if (merge.rank == kNoRank) {
    return;
  }
  workspace->heap.push_back({.rank = merge.rank,
                             .position = left,
                             .left = a.id,
                             .right = b.id,
                             .merged = merge.merged});
  std::push_heap(workspace->heap.begin(), workspace->heap.end(), Later);
}

void Bpe::MergeAll(absl::string_view word, Workspace* workspace) const {
  auto& symbols = workspace->symbols;
  auto& heap = workspace->heap;
  heap.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) {
    Propose(word, static_cast<int32_t>(i), workspace);
  }
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), Later);
    const Workspace::Candidate best = heap.back();
    heap.pop_back();
    Workspace::Symbol& left = symbols[static_cast<size_t>(best.position)];
    if (left.end == left.begin || left.next < 0 || left.id != best.left) {
      continue;  // merged in the meantime
    }
    Workspace::Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right) {
      continue;
    }
    left.id = best.merged;
    left.end = right.end;
    left.next = right.next;
    right.end = right.begin;
    if (right.next >= 0) {
      symbols[static_cast<size_t>(right.next)].previous = best.position;
    }
    Propose(word, left.previous, workspace);
    Propose(word, best.position, workspace);
  }
}

}  // namespace millrace::model
