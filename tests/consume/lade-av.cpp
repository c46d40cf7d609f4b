// A program of somebody else's that decodes video: trainer PHOTO.

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>

#include <filesystem>
#include <fstream>

float sum(const lade::tensor& batch);  // model.cpp

int main(int, char** argv) {
  std::filesystem::path photo(argv[1]);
  lade::buffer bytes(std::filesystem::file_size(photo));
  std::ifstream(photo).read(reinterpret_cast<char*>(bytes.data()),
                            static_cast<std::streamsize>(bytes.size()));
  const auto packets = lade::media::demux(bytes, photo.string(), lade::media::stream_kind::video);
  const auto frames = lade::media::decode(packets);
  return frames.size() == 1 && frames[0].plane(0).shape()[0] > 0 ? 0 : 1;
}
