// Package source fetches the content of bundles. A Fetcher for each type of source writes the content to a folder, and returns the source
// with all movable references pinned. Fetching a pinned image, commit or archive either gives the same content or fails. ConfigMaps and
// uploads without a digest cannot be pinned: the Bundle controller compares the digest of their content.
//
// Every fetch is bounded in time and in size, and its content passes through package archive. The texts of errors contain neither credentials nor
// the responses of servers. To add a type, implement Fetcher and add it to New.
package source
