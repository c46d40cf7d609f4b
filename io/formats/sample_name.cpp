#include <lade/error.hpp>
#include <lade/url.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sample_name.hpp"

namespace lade::detail {

sample_name::sample_name(std::string_view key, std::string_view extension)
    : key_(key), field_(extension) {
  for (auto& c : field_)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
}

std::optional<sample_name> divide_member_name(std::string_view name) {
  auto first = name.substr(0, name.find('/'));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return std::nullopt;
  auto begin = name.rfind('/') + 1;
  auto dot = name.find('.', begin);
  if (dot == name.npos || dot == begin) return std::nullopt;
  return sample_name(name.substr(0, dot), name.substr(dot + 1));
}

bool sample_fields::contains(const std::string& field) const {
  return names.empty() || field == label || std::ranges::find(names, field) != names.end() ||
         std::ranges::find(data, field) != data.end();
}

static std::int64_t label_of(const std::string& key, const field& from) {
  auto text = from.text();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t label = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (failure != std::errc() || end != text.data() + text.size() || label < 0)
    throw error(errc::invalid_data, "read the label of " + without_secrets(key),
                "its field " + from.name() + " is no integer from 0 on");
  return label;
}

[[noreturn]] static void refuse_fields(const std::string& key, const std::vector<field>& fields,
                                       const std::string& lacks) {
  std::string has;
  for (auto& each : fields) has += (has.empty() ? "" : ", ") + each.name();
  throw error(errc::invalid_data, "read the sample " + without_secrets(key),
              "it has no field " + lacks + "; it has " + (has.empty() ? "none" : has));
}

static std::string alternatives_of(const std::vector<std::string>& names) {
  std::string all;
  for (auto& each : names) all += (all.empty() ? "" : " or ") + each;
  return all;
}

sample sample_fields::make(std::string key, std::vector<field> fields) const {
  auto find = [&](const std::string& name) {
    return std::ranges::find(fields, name, &field::name);
  };
  if (!names.empty() && fields.empty()) refuse_fields(key, fields, alternatives_of(names));
  auto no_field = fields.end();
  auto label_from = label.empty() ? no_field : find(label);
  if (!label.empty() && label_from == no_field) refuse_fields(key, fields, label);
  auto value = label.empty() ? sample::no_label : label_of(key, *label_from);
  sample made(std::move(key), value);
  auto data_from = no_field;
  for (auto name = data.begin(); name != data.end() && data_from == no_field; ++name)
    data_from = find(*name);
  if (!data.empty() && data_from == no_field)
    refuse_fields(made.key(), fields, alternatives_of(data));
  if (data_from != no_field) made = std::move(made).with_data(data_from->bytes());
  return std::move(made).with_fields(std::move(fields));
}

}  // namespace lade::detail
