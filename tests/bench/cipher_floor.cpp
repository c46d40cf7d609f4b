// What the cipher of a TLS connection takes by itself: opening records of AES-256-GCM as OpenSSL
// does, for the bytes of an object.

#include <openssl/evp.h>

#include "bench.hpp"

int main(int argc, char** argv) {
  bench::options options(argc, argv, "The CPU time of decrypting an object.");
  auto bytes = options.number("bytes", 110'000, "of the object");
  auto count = options.number("objects", 10'000, "how many");
  options.done();

  constexpr std::size_t record = 16384, tag = 16;
  unsigned char key[32] = {1}, nonce[12] = {2}, sum[tag], head[5] = {23, 3, 3, 64, 17};
  std::vector<unsigned char> plain(bytes + record), sealed(bytes + record);
  auto* context = EVP_CIPHER_CTX_new();
  int length = 0;
  bench::stopwatch clock;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t at = 0; at < bytes; at += record) {
      auto part = static_cast<int>(std::min(record, bytes - at));
      EVP_DecryptInit_ex(context, at == 0 && i == 0 ? EVP_aes_256_gcm() : nullptr, nullptr,
                         at == 0 && i == 0 ? key : nullptr, nonce);
      EVP_DecryptUpdate(context, nullptr, &length, head, sizeof head);
      EVP_DecryptUpdate(context, plain.data() + at, &length, sealed.data() + at, part);
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, tag, sum);
      EVP_DecryptFinal_ex(context, plain.data() + at + length, &length);  // nothing was sealed
    }
  bench::report("cipher_floor")
      .add("objects", count)
      .add("cpu_us_per_object", clock.cpu_s() / static_cast<double>(count) * 1e6)
      .print();
  EVP_CIPHER_CTX_free(context);
}
