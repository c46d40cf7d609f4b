#include <lade/error.hpp>
#include <lade/field.hpp>

#include <array>

#include <fmt/format.h>

namespace lade {

std::string_view name(field::kind kind) noexcept {
  constexpr std::array<std::string_view, 5> names{"bytes", "text", "integer", "number", "tensor"};
  return names[static_cast<std::size_t>(kind)];
}

const buffer& field::bytes() const {
  if (auto* bytes = std::get_if<buffer>(&content_)) return *bytes;
  refuse_kind("bytes");
}

std::string_view field::text() const {
  if (auto* text = std::get_if<std::string>(&content_)) return *text;
  if (auto* bytes = std::get_if<buffer>(&content_)) return bytes->text();
  refuse_kind("text");
}

std::int64_t field::integer() const {
  if (auto* integer = std::get_if<std::int64_t>(&content_)) return *integer;
  refuse_kind("integer");
}

double field::number() const {
  if (auto* number = std::get_if<double>(&content_)) return *number;
  if (auto* integer = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*integer);
  refuse_kind("number");
}

const tensor& field::tensor() const {
  if (auto* tensor = std::get_if<lade::tensor>(&content_)) return *tensor;
  refuse_kind("tensor");
}

std::size_t field::size_bytes() const {
  switch (type()) {
    case kind::bytes: return bytes().size();
    case kind::text: return text().size();
    case kind::tensor: return tensor().spec().bytes();
    default: return sizeof(std::int64_t);
  }
}

void field::refuse_integer() {
  throw error(errc::limit_exceeded, "make a field", "an integer above 9223372036854775807");
}

void field::refuse_kind(std::string_view wanted) const {
  throw error(errc::invalid_argument, fmt::format("read field {} as {}", name_, wanted),
              "it holds " + std::string(lade::name(type())));
}

}  // namespace lade
