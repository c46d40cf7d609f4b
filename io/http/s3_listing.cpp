#include "s3_listing.hpp"

#include <lade/error.hpp>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace lade::io::http {

[[noreturn]] static void refuse_listing(std::string_view why) {
  throw error(errc::invalid_data, "read a listing of objects", why);
}

// XML 1.0, section 4.6, and character references of ASCII.
static std::string unescaped_xml(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 7> entities{{{"&amp;", '&'},
                                                                       {"&lt;", '<'},
                                                                       {"&gt;", '>'},
                                                                       {"&quot;", '"'},
                                                                       {"&apos;", '\''},
                                                                       {"&#34;", '"'},
                                                                       {"&#39;", '\''}}};
  std::string plain;
  while (!text.empty()) {
    std::size_t used = 1;
    char character = text[0];
    if (character == '&') {
      used = 0;
      for (auto& [name, stands_for] : entities)
        if (text.starts_with(name)) {
          used = name.size();
          character = stands_for;
        }
      if (used == 0) refuse_listing("an entity that XML does not have");
    }
    plain += character;
    text.remove_prefix(used);
  }
  return plain;
}

static std::optional<int> hexadecimal_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

static std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    auto high = i + 2 < text.size() ? hexadecimal_value(text[i + 1]) : std::nullopt;
    auto low = i + 2 < text.size() ? hexadecimal_value(text[i + 2]) : std::nullopt;
    if (!high || !low) refuse_listing("a key that is not encoded as asked");
    plain += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return plain;
}

// The content of the first element of that name in `xml`; nothing if there is none.
static std::optional<std::string_view> element_of(std::string_view xml, const std::string& name) {
  auto opening = "<" + name + ">";
  auto begin = xml.find(opening);
  if (begin == std::string_view::npos) return std::nullopt;
  xml.remove_prefix(begin + opening.size());
  auto end = xml.find("</" + name + ">");
  if (end == std::string_view::npos) refuse_listing("no end of <" + name + ">");
  return xml.substr(0, end);
}

static listed_key parse_listed_key(std::string_view xml, bool is_encoded) {
  auto key = element_of(xml, "Key");
  auto size = element_of(xml, "Size");
  if (!key || !size) refuse_listing("an object without a key or a size");
  listed_key listed;
  auto plain = unescaped_xml(*key);
  listed.key = is_encoded ? percent_decoded(plain) : std::move(plain);
  auto [end, failure] = std::from_chars(size->data(), size->data() + size->size(), listed.bytes);
  if (failure != std::errc() || end != size->data() + size->size())
    refuse_listing("a size that is no number");
  auto tag = unescaped_xml(element_of(xml, "ETag").value_or(""));
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"')
    tag = tag.substr(1, tag.size() - 2);
  listed.etag = std::move(tag);
  return listed;
}

listed_page parse_listed_page(std::string_view xml) {
  if (xml.find("<ListBucketResult") == std::string_view::npos)
    refuse_listing("no ListBucketResult");
  constexpr std::string_view end = "</Contents>";
  listed_page page;
  bool is_encoded = element_of(xml, "EncodingType").value_or("") == "url";
  if (element_of(xml, "IsTruncated").value_or("false") == "true") {
    page.next = unescaped_xml(element_of(xml, "NextContinuationToken").value_or(""));
    if (page.next.empty()) refuse_listing("more to come, and no token to ask for it by");
  }
  while (auto contents = element_of(xml, "Contents")) {
    page.keys.push_back(parse_listed_key(*contents, is_encoded));
    xml.remove_prefix(static_cast<std::size_t>(contents->data() - xml.data()) + contents->size() +
                      end.size());
  }
  return page;
}

}  // namespace lade::io::http
