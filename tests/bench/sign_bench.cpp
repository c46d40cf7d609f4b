// What a signature of a request takes of the CPU.

#include <lade/io/http/s3.hpp>

#include <chrono>
#include <string>

#include "../../io/http/sigv4.hpp"
#include "bench.hpp"

int main(int argc, char** argv) {
  bench::options options(argc, argv, "Signs requests for objects of one bucket.");
  auto count = options.number("requests", 100'000, "how many, all of one day");
  options.done();

  const lade::io::http::s3_signer signer("us-east-1");
  const lade::io::http::s3_credentials keys("AKIAIOSFODNN7EXAMPLE", "secret");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  std::size_t bytes = 0;
  bench::stopwatch clock;
  for (std::size_t i = 0; i < count; ++i) {
    lade::io::http::header_list headers;
    auto url = "https://bucket.s3.amazonaws.com/train/" + std::to_string(i);
    signer.sign("GET", url, headers, keys, "UNSIGNED-PAYLOAD", now);
    bytes += headers.back().second.size();
  }
  if (bytes == 0) bench::fail("nothing was signed");
  bench::report("sign_bench")
      .add("requests", count)
      .add("cpu_us_per_request", clock.cpu_s() / static_cast<double>(count) * 1e6)
      .print();
}
