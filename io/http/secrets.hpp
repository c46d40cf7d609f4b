// Keeps the credentials of a request out of its error messages.

#pragma once

#include "transfer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lade::io::http {

// The secrets of a request, encoded and decoded, the longest first:
//   - values of Authorization, also of lines that libcurl has added
//   - values of headers that the program has set
//   - tokens and signatures
//   - passwords of the URL and of proxies
class request_secrets {
 public:
  // `headers`: lines "Name: value". `form`: a body of the type application/x-www-form-urlencoded.
  request_secrets(std::string_view url, const curl_slist* headers, std::string_view form = {});

  // The secrets of a transfer.
  static request_secrets of(const transfer& active);

  // Returns the text with "..." instead of each secret, and of the user information of each URL.
  // A secret of less than 6 bytes is replaced only where it is a whole word. If the text `was_cut`,
  // the beginning of a secret at its end is replaced, too.
  std::string hidden_in(std::string text, bool was_cut = false) const;

 private:
  void add(std::string_view secret);
  void add_header(std::string_view line);
  void add_authorization(std::string_view value);
  void add_named(std::string_view list, std::string_view separator);
  void add_url(std::string_view url);
  void add_user(std::string_view user);
  void add_proxy(std::string_view proxy);
  void add_parameters(std::string_view query);
  void add_form(std::string_view form);

  void sort();

  std::vector<std::string> texts_;
};

}  // namespace lade::io::http
