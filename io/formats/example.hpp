// Parses the protocol buffer tf.train.Example.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lade::io {

// A feature: its name and its list, as views of the message.
class example_feature {
 public:
  enum class kind : std::uint8_t { none, bytes, floats, integers };

  std::string_view name;
  kind type = kind::none;
  std::span<const std::byte> list = {};  // the message of the list
  std::size_t values = 0;                // number of values; all are valid
};

// Parses the features of an Example, in order. Throws error(invalid_data) naming `name` and the
// byte for other messages, and error(limit_exceeded) for features that need more than `max_fields`
// fields.
std::vector<example_feature> parse_example_features(std::span<const std::byte> example,
                                                    std::string_view name, std::size_t max_fields);

// Return or copy the values of a feature of this kind, in order.
std::vector<std::span<const std::byte>> bytes_of(const example_feature& feature);
void copy_floats(const example_feature& feature, float* into);
void copy_integers(const example_feature& feature, std::int64_t* into);

}  // namespace lade::io
