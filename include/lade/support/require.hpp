// Checks of options and arguments. Their errors name the stage or function (`doing`), the option
// and the value.

#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lade::support {

// Upper bounds of options. A greater number is a mistake, such as a converted negative one. The
// bounds also ensure that sums of two or three options cannot overflow.
inline constexpr std::uint64_t most_threads = 1 << 16;                  // 65,536
inline constexpr std::uint64_t most_calls = 1 << 20;                    // 1,048,576 at a time
inline constexpr std::uint64_t most_in_batch = 1 << 30;                 // 1,073,741,824 items
inline constexpr std::uint64_t most_elements = std::uint64_t{1} << 48;  // 281,474,976,710,656

// A number for messages: "0.5", "1e+300".
std::string number_text(double value);

struct bounds {
  std::uint64_t least = 0;
  std::uint64_t most = most_calls;
};

// Throws error(invalid_argument), "<doing>: <option> is <value>; it must be <allowed>".
[[noreturn]] void refuse_value(std::string_view doing, std::string_view option,
                               const std::string& value, const std::string& allowed);

// Throw error(invalid_argument), "<doing>: <option> is <value>; it must be ...", for a value out of
// its bounds, or for a double that is NaN.
void require_count(std::string_view doing, std::string_view option, std::uint64_t value,
                   const bounds& allowed = {});
void require_number(std::string_view doing, std::string_view option, double value, double least,
                    double most);
void require_duration(std::string_view doing, std::string_view option,
                      std::chrono::nanoseconds value, std::chrono::nanoseconds least = {});

// The same for coarser units, whose values in nanoseconds may overflow: at most 100 years.
template <class Rep, class Period>
void require_duration(std::string_view doing, std::string_view option,
                      std::chrono::duration<Rep, Period> value,
                      std::chrono::nanoseconds least = {}) {
  constexpr std::chrono::years most(100);
  bool has_nanoseconds = -most <= value && value <= most;
  if (has_nanoseconds)
    return require_duration(doing, option, std::chrono::nanoseconds(value), least);
  refuse_value(doing, option, number_text(std::chrono::duration<double>(value).count()) + " s",
               "from 0 s to 100 years");
}

// Throws error(invalid_argument) if there are no weights, if a weight is negative or not finite, or
// if all are 0.
void require_weights(std::string_view doing, std::span<const double> weights);

}  // namespace lade::support
