// How the name of a member of an archive is divided into the key of a sample and a field, and how
// fields become a sample.

#pragma once

#include <lade/detail/data/stacked_fields.hpp>
#include <lade/field.hpp>
#include <lade/sample.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lade::detail {

// A sample with more fields is refused: each new one is compared with all others.
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

// Nothing for a member that belongs to no sample.
std::optional<sample_name> divide_member_name(std::string_view name);

// Which fields a sample gets, and what becomes of them.
struct sample_fields {
  std::vector<std::string> names;  // all if empty
  std::vector<std::string> data;
  std::string label;

  // Whether the field is looked at.
  bool contains(const std::string& field) const;

  // Throws error(invalid_data) for a label that is no integer, and where the field of the label,
  // all fields of the data, or all that are wanted are missing.
  sample make(std::string key, std::vector<field> fields) const;
};

}  // namespace lade::detail
