// A program of somebody else's that filters video: trainer PHOTO.

#include <lade/media/av/decoder.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/media/filters/filter_text.hpp>

#include <filesystem>
#include <fstream>

float sum(const lade::tensor& batch);  // model.cpp

int main(int, char** argv) {
  std::filesystem::path photo(argv[1]);
  lade::buffer bytes(std::filesystem::file_size(photo));
  std::ifstream(photo).read(reinterpret_cast<char*>(bytes.data()),
                            static_cast<std::streamsize>(bytes.size()));
  const auto packets = lade::media::demux(bytes, photo.string(), lade::media::stream_kind::video);
  const auto frames = lade::media::filter_frames(
      lade::media::decode(packets), lade::media::scale_filter({.width = 32, .height = 32}));
  return frames.size() == 1 && frames[0].width() == 32 ? 0 : 1;
}
