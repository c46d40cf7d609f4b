// What flows through a loader before it becomes batches: a key, a label, bytes and named fields.

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

// A std::filesystem::path. Its header is left to those who have paths, since it takes long to
// compile.
template <class P>
concept file_path = requires(const P& path) {
  { path.filename() } -> std::same_as<P>;
  { path.string() } -> std::same_as<std::string>;
};

}  // namespace detail

// One training sample: its key (a path, a URL, a member's name), its label, its bytes once they
// have been read, and fields by name, where a reader yields several values for one sample:
//
//   sample.field("jpg").bytes()        sample.field("caption").text()
//
// A small value: copies share the key, the bytes and the fields.
class sample {
 public:
  static constexpr std::int64_t no_label = -1;

  sample() : sample(std::string()) {}
  explicit sample(std::string key, std::int64_t label = no_label)
      : key_(std::make_shared<const std::string>(std::move(key))), label_(label) {}
  explicit sample(const char* key) : sample(std::string(key)) {}
  sample(const detail::file_path auto& path) : sample(path.string()) {}

  const std::string& key() const noexcept { return *key_; }

  // What errors call the sample: its key, without secrets if that is a URL (see url.hpp).
  std::string name() const;

  std::int64_t label() const noexcept { return label_; }
  const buffer& data() const noexcept { return data_; }

  // Whether with_data has been called, also with no bytes: those of an empty file. A listing's
  // samples have no data until they are read.
  bool has_data() const noexcept { return has_data_; }

  // The same sample with other bytes, without any, or with another label.
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

  // All fields, in the order in which they were added.
  std::span<const lade::field> fields() const noexcept {
    return fields_ ? std::span<const lade::field>(*fields_) : std::span<const lade::field>();
  }

  // The field of that name. `find_field` returns null if there is none; `field` throws
  // error(invalid_argument) that names the sample, the field, and those it has.
  const lade::field* find_field(std::string_view name) const noexcept;
  const lade::field& field(std::string_view name) const;

  // The same sample with one more field, which replaces one of the same name, or without one. Both
  // copy the list of fields.
  sample with_field(lade::field added) &&;
  sample without_field(std::string_view name) &&;

  // The same sample with these fields only. Throws error(invalid_argument) for a name that occurs
  // twice.
  sample with_fields(std::vector<lade::field> fields) &&;

  // The size of the sample's data and fields in memory.
  std::size_t content_bytes() const;

 private:
  std::shared_ptr<const std::string> key_;
  std::int64_t label_;
  buffer data_;
  bool has_data_ = false;
  std::shared_ptr<const std::vector<lade::field>> fields_;  // null if there are none
};

}  // namespace lade
