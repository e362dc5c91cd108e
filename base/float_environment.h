#pragma once

namespace millrace {

// Sets the calling thread's floating-point control register: round to nearest
// even, subnormals kept, on Arm also NaN kept and IEEE half precision. Every
// thread that computes calls it first, because a library built with fast-math
// switches flushing on behind one's back.
void SetFloatEnvironment();

// Whether the calling thread rounds to nearest and keeps subnormals.
[[nodiscard]] bool FloatEnvironmentIsStrict();

}  // namespace millrace
