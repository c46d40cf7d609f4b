// What a request proves itself with, kept out of what is told of its failure.

#pragma once

#include "transfer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace lade::io::http {

// Texts of a request that only its server should see: values of Authorization and of the headers of
// the program, tokens, signatures, and passwords of the URL, of proxies, and of what libcurl itself
// has added, encoded and not. The longest first.
class request_secrets {
 public:
  // `headers`: lines "Name: value". `form`: the body of a request that has one of names and values.
  request_secrets(std::string_view url, const curl_slist* headers, std::string_view form = {});

  // Those of a transfer.
  static request_secrets of(const transfer& active);

  // A text with "..." in place of each of them, also where a part of one is at its end, if it was
  // cut there. Short ones, of less than 6 bytes, are hidden where they are whole words. So is the
  // user information of every URL in it.
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
