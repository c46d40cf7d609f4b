// Checks of options and arguments. Their errors name the stage or function, the option and the
// value.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lade::detail {

// The most that options may ask for. A greater number is a mistake, such as a negative one that was
// converted; with it, sums of two or three options cannot overflow.
inline constexpr std::uint64_t most_threads = 1 << 16;   // 65,536
inline constexpr std::uint64_t most_calls = 1 << 20;     // at a time: 1,048,576
inline constexpr std::uint64_t most_in_batch = 1 << 30;  // in one batch: 1,073,741,824
inline constexpr std::uint64_t most_elements = std::uint64_t{1} << 48;  // 281,474,976,710,656

// As messages write a number: "0.5", "1e+300".
std::string number_text(double value);

struct bounds {
  std::uint64_t least = 0;
  std::uint64_t most = most_calls;
};

// Throw error(invalid_argument), "<doing>: <option> is <value>; it must be ...", for a value that
// is out of its bounds or, of a double, no number.
void require_count(std::string_view doing, std::string_view option, std::uint64_t value,
                   const bounds& allowed = {});
void require_number(std::string_view doing, std::string_view option, double value, double least,
                    double most);
void require_duration(std::string_view doing, std::string_view option,
                      std::chrono::nanoseconds value, std::chrono::nanoseconds least = {});

// Throws error(invalid_argument) if there are no weights, if one is negative or not finite, or if
// all are 0.
void require_weights(std::string_view doing, std::span<const double> weights);

}  // namespace lade::detail
