// A program of somebody else's that decodes images: trainer PHOTO.

#include <lade/media/image.hpp>

#include <filesystem>
#include <fstream>

float sum(const lade::tensor& batch);  // model.cpp

int main(int, char** argv) {
  std::filesystem::path photo(argv[1]);
  lade::buffer bytes(std::filesystem::file_size(photo));
  std::ifstream(photo).read(reinterpret_cast<char*>(bytes.data()),
                            static_cast<std::streamsize>(bytes.size()));
  lade::media::decode_image decode({.width = 224, .height = 224, .type = lade::element_type::f32});
  return sum(decode(lade::sample(photo).with_data(bytes))) > 0 ? 0 : 1;
}
