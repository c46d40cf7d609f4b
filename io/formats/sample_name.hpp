// Divides the names of archive members into keys and fields of samples, and makes samples of
// fields.

#pragma once

#include <lade/field.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

// Samples with more fields are refused: each new field is compared with all others.
inline constexpr std::size_t most_sample_fields = 4096;

class sample_name {
 public:
  sample_name(std::string_view key, std::string_view extension);

  const std::string& key() const noexcept { return key_; }
  const std::string& field() const noexcept { return field_; }  // in lower case

 private:
  std::string key_;
  std::string field_;
};

// Returns nothing for a member that belongs to no sample.
std::optional<sample_name> divide_member_name(std::string_view name);

// The fields of a sample, and their roles.
struct sample_fields {
  std::vector<std::string> names;  // all if empty
  std::vector<std::string> data;
  std::string label;

  // Whether the field is used.
  bool contains(const std::string& field) const;

  // Throws error(invalid_data) for a label that is not an integer, and if the label's field, all
  // data fields, or all selected fields are missing.
  sample make(std::string key, std::vector<field> fields) const;
};

}  // namespace lade::detail
