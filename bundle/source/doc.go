// Package source fetches the content of bundles. Each type of source has a Fetcher, which writes the content to a folder, and
// returns the source with all movable references pinned. Fetching a pinned image, commit or archive either gives the same content
// or fails. ConfigMaps and uploads without a digest cannot be pinned: the Bundle controller compares the digest of their content.
//
// Every fetch is limited in time and size, and package archive validates its content. Error messages contain neither credentials
// nor server responses.
//
// To add a type, add its block and its rule to BundleSource in package v1alpha1, implement Fetcher, add it to New and hasBlock, and
// add a variable that turns it off to Sources in bundle/service. checkTemplate in internal/sandbox/fakehub has the rule, too, and
// ebctl and the console describe the source in sourceText.
package source
