// The compiled part of lade-http. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../../io/http/attempt.cpp"
#include "../../../../io/http/body_stream.cpp"
#include "../../../../io/http/byte_permits.cpp"
#include "../../../../io/http/checksums.cpp"
#include "../../../../io/http/client.cpp"
#include "../../../../io/http/client_statistics.cpp"
#include "../../../../io/http/credential_answers.cpp"
#include "../../../../io/http/credential_cache.cpp"
#include "../../../../io/http/credential_sources.cpp"
#include "../../../../io/http/engine.cpp"
#include "../../../../io/http/error.cpp"
#include "../../../../io/http/escapes.cpp"
#include "../../../../io/http/failures.cpp"
#include "../../../../io/http/handles.cpp"
#include "../../../../io/http/hops.cpp"
#include "../../../../io/http/library.cpp"
#include "../../../../io/http/origin.cpp"
#include "../../../../io/http/parts.cpp"
#include "../../../../io/http/profile_file.cpp"
#include "../../../../io/http/ranges.cpp"
#include "../../../../io/http/resolver.cpp"
#include "../../../../io/http/s3.cpp"
#include "../../../../io/http/s3_credentials.cpp"
#include "../../../../io/http/s3_listing.cpp"
#include "../../../../io/http/s3_state.cpp"
#include "../../../../io/http/s3_upload.cpp"
#include "../../../../io/http/secrets.cpp"
#include "../../../../io/http/settings.cpp"
#include "../../../../io/http/sigv4.cpp"
#include "../../../../io/http/transfer.cpp"
#include "../../../../io/http/urls.cpp"
#include "../../../../io/http/xml.cpp"
