#include <lade/error.hpp>
#include <lade/sample.hpp>
#include <lade/url.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace lade {

std::string sample::name() const { return without_secrets(key()); }

const field* sample::find_field(std::string_view name) const noexcept {
  for (auto& each : fields())
    if (each.name() == name) return &each;
  return nullptr;
}

static std::string names_of(std::span<const field> fields) {
  if (fields.empty()) return "it has none";
  std::string names = "it has ";
  for (auto& each : fields) names += (&each == fields.data() ? "" : ", ") + each.name();
  return names;
}

const field& sample::field(std::string_view name) const {
  if (auto* found = find_field(name)) return *found;
  throw error(errc::invalid_argument, fmt::format("find field {} of {}", name, this->name()),
              names_of(fields()));
}

sample sample::with_field(lade::field added) && {
  std::vector<lade::field> fields(fields_ ? *fields_ : std::vector<lade::field>());
  auto same = std::ranges::find(fields, added.name(), &lade::field::name);
  if (same == fields.end())
    fields.push_back(std::move(added));
  else
    *same = std::move(added);
  fields_ = std::make_shared<const std::vector<lade::field>>(std::move(fields));
  return std::move(*this);
}

sample sample::without_field(std::string_view name) && {
  if (!find_field(name)) return std::move(*this);
  auto fields = *fields_;
  std::erase_if(fields, [&](auto& each) { return each.name() == name; });
  fields_ = std::make_shared<const std::vector<lade::field>>(std::move(fields));
  return std::move(*this);
}

sample sample::with_fields(std::vector<lade::field> fields) && {
  for (auto each = fields.begin(); each != fields.end(); ++each)
    if (std::find_if(fields.begin(), each,
                     [&](auto& other) { return other.name() == each->name(); }) != each)
      throw error(errc::invalid_argument, "set fields of " + name(),
                  "two are called " + each->name());
  fields_ = std::make_shared<const std::vector<lade::field>>(std::move(fields));
  return std::move(*this);
}

std::size_t sample::content_bytes() const {
  auto bytes = data_.size();
  for (auto& each : fields()) bytes += each.size_bytes();
  return bytes;
}

}  // namespace lade
