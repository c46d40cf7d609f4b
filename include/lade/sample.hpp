// What flows through a loader before it becomes numbers: a key, a label and bytes.

#pragma once

#include <lade/buffer.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace lade {

// One training sample on its way: its key (a path, a URL, a member's name), its label, and its
// bytes once they have been read. Copies share the key and the bytes.
class sample {
 public:
  static constexpr std::int64_t no_label = -1;

  sample() : sample(std::string()) {}
  explicit sample(std::string key, std::int64_t label = no_label)
      : key_(std::make_shared<const std::string>(std::move(key))), label_(label) {}
  explicit sample(const char* key) : sample(std::string(key)) {}
  sample(const std::filesystem::path& path) : sample(path.string()) {}

  const std::string& key() const noexcept { return *key_; }
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

 private:
  std::shared_ptr<const std::string> key_;
  std::int64_t label_;
  buffer data_;
  bool has_data_ = false;
};

}  // namespace lade
