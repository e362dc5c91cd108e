#include "tests/support/counted_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};
std::atomic<int64_t> allocated_bytes{0};

// Not inlined, or gcc 12 takes the free below for one that does not match.
[[gnu::noinline]] void* CountedAllocation(std::size_t size) {
  ++allocations;
  allocated_bytes += static_cast<int64_t>(size);
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  std::abort();
}

[[gnu::noinline]] void Free(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) { return CountedAllocation(size); }
void* operator new[](std::size_t size) { return CountedAllocation(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }

namespace millrace::testing {

int64_t NumAllocations() { return allocations; }

int64_t AllocatedBytes() { return allocated_bytes; }

}  // namespace millrace::testing
