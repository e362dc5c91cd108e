#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/vocabulary.h"

namespace millrace::model {

// Byte-pair encoding of one word: characters are merged pair by pair, the pair
// of the least rank first and the leftmost of equals, until no pair is known.
// O(n log n) in the characters of the word. Immutable; any thread.
class Bpe {
 public:
  struct Options {
    bool ignore_merges = false;  // a whole word in the vocabulary is one token
    bool byte_fallback = false;  // unknown characters become tokens <0xNN>
    bool fuse_unknown = false;   // neighbouring unknown characters are one
    std::optional<TokenId> unknown{};
  };
  using Merges = std::vector<std::pair<std::string, std::string>>;

  // Buffers and the words already seen; one per call that encodes.
  struct Workspace {
    struct Symbol {
      TokenId id = 0;  // -1: a character that is in no table of scores
      uint32_t begin = 0;
      uint32_t end = 0;  // equal to begin once merged away
      int32_t previous = -1;
      int32_t next = -1;
    };
    struct Candidate {
      uint32_t rank = 0;
      int32_t position = 0;  // index of the left symbol
      TokenId left = 0, right = 0, merged = 0;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    absl::flat_hash_map<std::string, std::vector<TokenId>> seen;
  };

  // Rank is the position in the list; both sides and their concatenation must
  // be tokens. Borrows the vocabulary.
  static absl::StatusOr<std::unique_ptr<Bpe>> FromMerges(
      const Vocabulary& vocabulary, const Merges& merges,
      const Options& options, absl::string_view object);
  // SentencePiece: a pair is known when its concatenation is a token in
  // `score_ranks` [vocabulary.size()], which orders tokens by falling score;
  // kNoRank takes no part. Borrows the vocabulary.
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;
  static std::unique_ptr<Bpe> FromScores(const Vocabulary& vocabulary,
                                         std::vector<uint32_t> score_ranks,
                                         const Options& options);

  // Before the first Encode: no text becomes one of these tokens, neither a
  // word that is spelled like one nor by merging its parts. They mark turns,
  // and what users write must not.
  void KeepFromText(const absl::flat_hash_set<TokenId>& tokens);

  // Appends the ids of `word`, well-formed UTF-8 of less than 2 GiB.
  void Encode(absl::string_view word, Workspace* workspace,
              std::vector<TokenId>* out) const;

 private:
  struct Merge {
    uint32_t rank;
    TokenId merged;
  };

  Bpe(const Vocabulary& vocabulary, const Options& options);

  void EncodeUncached(absl::string_view word, Workspace* workspace,
                      std::vector<TokenId>* out) const;
  void Start(absl::string_view word, Workspace* workspace) const;
  void Propose(absl::string_view word, int32_t left,
               Workspace* workspace) const;
  void MergeAll(absl::string_view word, Workspace* workspace) const;
  // The token of exactly this text; -1 where there is none, or none for texts.
  [[nodiscard]] TokenId Find(absl::string_view text) const;
  // The byte tokens of a character; false unless all exist.
  bool AppendBytes(absl::string_view character, Workspace* workspace,
                   uint32_t begin) const;

  const Vocabulary& vocabulary_;
  const Options options_;
  std::array<TokenId, 256> byte_ids_{};
  absl::flat_hash_set<TokenId> kept_from_text_;
  absl::flat_hash_map<uint64_t, Merge> merges_;
  std::vector<uint32_t> score_ranks_;  // empty: by merges_
  size_t token_bytes_max_ = 0;         // of tokens with a rank by score
};

}  // namespace millrace::model
