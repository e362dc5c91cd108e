#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace millrace {

// An index of one kind of thing; kinds do not convert into each other.
//   using LayerIndex = StrongIndex<struct LayerIndexTag>;
template <typename Tag>
class StrongIndex {
 public:
  constexpr StrongIndex() = default;
  constexpr explicit StrongIndex(int64_t value) : value_(value) {}
  [[nodiscard]] constexpr int64_t value() const { return value_; }
  constexpr auto operator<=>(const StrongIndex&) const = default;
  constexpr StrongIndex& operator++() {
    ++value_;
    return *this;
  }

  template <typename H>
  friend H AbslHashValue(H state, const StrongIndex& index) {
    return H::combine(std::move(state), index.value_);
  }

 private:
  int64_t value_ = 0;
};

}  // namespace millrace
