#include "example.hpp"

#include "protobuf_reader.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/support/little_endian.hpp>
#include <lade/tensor.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace lade {

namespace io {

using wire = protobuf_reader::wire;

// Reads the next field, which must have this number.
static void next_example_field(protobuf_reader& message, std::uint32_t number) {
  message.next();
  if (message.number() != number)
    message.refuse(fmt::format("field {}, which it does not have", message.number()));
}

// Calls `each` with every value of a list of bytes.
template <class F>
static void each_bytes(protobuf_reader list, F each) {
  while (!list.at_end()) {
    next_example_field(list, 1);
    each(list.bytes());
  }
}

// Calls `each` with a reader at every number of a list, packed or not.
template <class F>
static void each_number(protobuf_reader list, wire type, std::string_view name,
                        const std::byte* begin, F each) {
  while (!list.at_end()) {
    next_example_field(list, 1);
    if (list.type() == type) {
      each(list);
      continue;
    }
    protobuf_reader packed(list.bytes(), name, begin);
    while (!packed.at_end()) each(packed);
  }
}

static float next_float(protobuf_reader& list) {
  return support::load_little<float>(list.fixed(4));
}

static std::int64_t next_integer(protobuf_reader& list) {
  return static_cast<std::int64_t>(list.varint());
}

std::vector<std::span<const std::byte>> bytes_of(const example_feature& feature) {
  std::vector<std::span<const std::byte>> values;
  values.reserve(feature.values);
  each_bytes({feature.list, feature.name, feature.list.data()},
             [&](std::span<const std::byte> value) { values.push_back(value); });
  return values;
}

void copy_floats(const example_feature& feature, float* into) {
  auto* begin = feature.list.data();
  each_number({feature.list, feature.name, begin}, wire::fixed32, feature.name, begin,
              [&](protobuf_reader& list) { *into++ = next_float(list); });
}

void copy_integers(const example_feature& feature, std::int64_t* into) {
  auto* begin = feature.list.data();
  each_number({feature.list, feature.name, begin}, wire::varint, feature.name, begin,
              [&](protobuf_reader& list) { *into++ = next_integer(list); });
}

// Reads the messages of one Example.
class example_parser {
 public:
  example_parser(std::span<const std::byte> example, std::string_view name, std::size_t max_fields)
      : example_(example), name_(name), max_fields_(max_fields) {}

  std::vector<example_feature> parse() {
    auto example = reader(example_);
    while (!example.at_end()) {
      next_example_field(example, 1);
      auto features = reader(example.bytes());
      while (!features.at_end()) {
        next_example_field(features, 1);
        add(reader(features.bytes()));
      }
    }
    require_unique();
    return std::move(features_);
  }

 private:
  protobuf_reader reader(std::span<const std::byte> message) const {
    return {message, name_, example_.data()};
  }

  // An entry of the map of features.
  void add(protobuf_reader entry) {
    example_feature feature;
    while (!entry.at_end()) {
      entry.next();
      if (entry.number() == 1)
        feature.name = text_of(entry.bytes());
      else if (entry.number() == 2)
        parse_feature(reader(entry.bytes()), feature);
      else
        entry.refuse("a feature that is not a name and a list");
    }
    fields_ +=
        std::max<std::size_t>(feature.type == example_feature::kind::bytes ? feature.values : 1, 1);
    if (fields_ > max_fields_)
      throw error(errc::limit_exceeded, "parse " + std::string(name_),
                  fmt::format("it has more fields than max_fields, {}", max_fields_));
    features_.push_back(feature);
  }

  void parse_feature(protobuf_reader message, example_feature& feature) const {
    while (!message.at_end()) {
      message.next();
      if (message.number() > 3) message.refuse("a list of an unknown type");
      if (feature.type != example_feature::kind::none) message.refuse("a feature with two lists");
      feature.type = static_cast<example_feature::kind>(message.number());
      feature.list = message.bytes();
      feature.values = count(feature);
    }
  }

  std::size_t count(const example_feature& feature) const {
    std::size_t values = 0;
    auto list = reader(feature.list);
    auto count_number = [&](auto read_number) {
      return [&values, read_number](protobuf_reader& at) {
        read_number(at);
        ++values;
      };
    };
    switch (feature.type) {
      case example_feature::kind::none: break;
      case example_feature::kind::bytes:
        each_bytes(list, [&](std::span<const std::byte>) { ++values; });
        break;
      case example_feature::kind::floats:
        each_number(list, wire::fixed32, name_, example_.data(), count_number(next_float));
        break;
      case example_feature::kind::integers:
        each_number(list, wire::varint, name_, example_.data(), count_number(next_integer));
        break;
    }
    return values;
  }

  void require_unique() const {
    std::vector<std::string_view> names;
    names.reserve(features_.size());
    for (auto& feature : features_) names.push_back(feature.name);
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      throw error(errc::invalid_data, "parse " + std::string(name_),
                  fmt::format("it has the feature \"{}\" twice", *twice));
  }

  static std::string_view text_of(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::span<const std::byte> example_;
  std::string_view name_;
  std::size_t max_fields_;
  std::size_t fields_ = 0;
  std::vector<example_feature> features_;
};

std::vector<example_feature> parse_example_features(std::span<const std::byte> example,
                                                    std::string_view name, std::size_t max_fields) {
  return example_parser(example, name, max_fields).parse();
}

// Makes the fields of one sample. All tensors share one allocation.
class example_fields {
 public:
  using kind = example_feature::kind;

  example_fields(const buffer& data, bool scalars) : data_(data), scalars_(scalars) {}

  std::vector<field> make(const std::vector<example_feature>& features) {
    std::size_t bytes = 0;
    for (auto& feature : features) bytes += tensor_bytes(feature);
    if (bytes > 0) numbers_ = allocate_now(bytes);
    fields_.reserve(features.size());
    for (auto& feature : features) add(feature);
    return std::move(fields_);
  }

 private:
  bool is_scalar(const example_feature& feature) const noexcept {
    return scalars_ && feature.values == 1;
  }

  // In units of 8, so that each tensor is aligned.
  std::size_t tensor_bytes(const example_feature& feature) const noexcept {
    if (is_scalar(feature) || feature.type == kind::none || feature.type == kind::bytes) return 0;
    return feature.type == kind::integers ? 8 * feature.values : (4 * feature.values + 7) / 8 * 8;
  }

  void add(const example_feature& feature) {
    switch (feature.type) {
      case kind::none: break;
      case kind::bytes: add_bytes(feature); break;
      case kind::floats: add_numbers<float>(feature, copy_floats); break;
      case kind::integers: add_numbers<std::int64_t>(feature, copy_integers); break;
    }
  }

  void add_bytes(const example_feature& feature) {
    auto values = bytes_of(feature);
    std::string name(feature.name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto offset = static_cast<std::size_t>(values[i].data() - data_.data());
      fields_.emplace_back(values.size() == 1 ? name : fmt::format("{}/{}", name, i),
                           data_.slice(offset, values[i].size()));
    }
  }

  template <class T>
  void add_numbers(const example_feature& feature, void (*copy)(const example_feature&, T*)) {
    std::string name(feature.name);
    if (is_scalar(feature)) {
      T value;
      copy(feature, &value);
      fields_.emplace_back(std::move(name), value);
      return;
    }
    auto bytes = tensor_bytes(feature);
    tensor values({type_of<T>(), {static_cast<std::int64_t>(feature.values)}},
                  numbers_.slice(used_, bytes));
    used_ += bytes;
    if (bytes > 0) copy(feature, values.template data<T>());
    fields_.emplace_back(std::move(name), std::move(values));
  }

  const buffer& data_;
  bool scalars_;
  buffer numbers_;
  std::size_t used_ = 0;
  std::vector<field> fields_;
};

}  // namespace io

sample detail::parse_example::operator()(sample record) const {
  auto features =
      io::parse_example_features(record.data().bytes(), record.name(), options_.max_fields);
  auto fields = io::example_fields(record.data(), options_.scalars).make(features);
  return std::move(record).without_data().with_fields(std::move(fields));
}

}  // namespace lade
