// A key, a label, bytes and named fields, which flow through a loader before batching.

#pragma once

#include <lade/buffer.hpp>
#include <lade/field.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lade {

namespace detail {

// A std::filesystem::path, whose header is not included here because it takes long to compile.
template <class P>
concept file_path = requires(const P& path) {
  { path.filename() } -> std::same_as<P>;
  { path.string() } -> std::same_as<std::string>;
};

}  // namespace detail

// A training sample: its key (a path, a URL, the name of a member), its label, and its bytes once
// they are read. If a reader yields several values per sample, these are named fields:
//
//   sample.field("jpg").bytes()        sample.field("caption").text()
//
// Cheap to copy: copies share the key, the bytes and the fields.
class sample {
 public:
  static constexpr std::int64_t no_label = -1;

  sample() : sample(std::string()) {}
  explicit sample(std::string key, std::int64_t label = no_label)
      : key_(std::make_shared<const std::string>(std::move(key))), label_(label) {}
  explicit sample(const char* key) : sample(std::string(key)) {}
  sample(const detail::file_path auto& path) : sample(path.string()) {}

  const std::string& key() const noexcept { return *key_; }

  // The name in errors: the key, without secrets if it is a URL (see url.hpp).
  std::string name() const;

  std::int64_t label() const noexcept { return label_; }
  const buffer& data() const noexcept { return data_; }

  // Whether with_data was called, even with an empty buffer, as for an empty file. The samples of a
  // listing have no data until they are read.
  bool has_data() const noexcept { return has_data_; }

  // Returns the sample with other bytes, without bytes, or with another label.
  sample with_data(buffer data) && {
    data_ = std::move(data);
    has_data_ = true;
    return std::move(*this);
  }
  sample without_data() && {
    data_ = {};
    has_data_ = false;
    return std::move(*this);
  }
  sample with_label(std::int64_t label) && {
    label_ = label;
    return std::move(*this);
  }

  // All fields, in the order of their addition.
  std::span<const lade::field> fields() const noexcept {
    return fields_ ? std::span<const lade::field>(*fields_) : std::span<const lade::field>();
  }

  // Returns the field of that name. If there is none, `find_field` returns null, and `field` throws
  // error(invalid_argument) naming the sample, the field, and the existing fields.
  const lade::field* find_field(std::string_view name) const noexcept;
  const lade::field& field(std::string_view name) const;

  // Returns the sample with a field added, which replaces a field of the same name, or with a field
  // removed. Both copy the list of fields.
  sample with_field(lade::field added) &&;
  sample without_field(std::string_view name) &&;

  // Returns the sample with `fields` instead of all its fields. Throws error(invalid_argument) if a
  // name occurs twice.
  sample with_fields(std::vector<lade::field> fields) &&;

  // The size of the sample's data and fields in memory, in bytes.
  std::size_t content_bytes() const;

 private:
  std::shared_ptr<const std::string> key_;
  std::int64_t label_;
  buffer data_;
  bool has_data_ = false;
  std::shared_ptr<const std::vector<lade::field>> fields_;  // null if there are none
};

}  // namespace lade
