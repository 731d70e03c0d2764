package v1alpha1

// SourceType names the block of a BundleSource that is set.
//
// +kubebuilder:validation:Enum=image;git;http;configMaps;upload
type SourceType string

// Types of sources.
const (
	SourceTypeImage      SourceType = "image"
	SourceTypeGit        SourceType = "git"
	SourceTypeHTTP       SourceType = "http"
	SourceTypeConfigMaps SourceType = "configMaps"
	SourceTypeUpload     SourceType = "upload"
)

// BundleSource is the source of a bundle's content. The block that type names must be set, and no other block.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.type == 'image')",message="source.image must be set if, and only if, type is image"
// +kubebuilder:validation:XValidation:rule="has(self.git) == (self.type == 'git')",message="source.git must be set if, and only if, type is git"
// +kubebuilder:validation:XValidation:rule="has(self.http) == (self.type == 'http')",message="source.http must be set if, and only if, type is http"
// +kubebuilder:validation:XValidation:rule="has(self.configMaps) == (self.type == 'configMaps')",message="source.configMaps must be set if, and only if, type is configMaps"
// +kubebuilder:validation:XValidation:rule="has(self.upload) == (self.type == 'upload')",message="source.upload must be set if, and only if, type is upload"
type BundleSource struct {
	Type SourceType `json:"type"`
	// Image is an OCI image or artifact.
	//
	// +optional
	Image *ImageSource `json:"image,omitempty"`
	// Git is a folder in a Git repository.
	//
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// HTTP is a gzip-compressed tar archive.
	//
	// +optional
	HTTP *HTTPSource `json:"http,omitempty"`
	// ConfigMaps are joined into one bundle. Two of them must not contain the same file.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ConfigMaps []ConfigMapSource `json:"configMaps,omitempty"`
	// Upload is an archive that a client uploads. The Bundle is pending until then.
	//
	// +optional
	Upload *UploadSource `json:"upload,omitempty"`
}

// ImageSource is an OCI image whose root file system is the bundle, or an OCI artifact with one layer.
type ImageSource struct {
	// Ref is the reference of the image. status.resolvedSource contains the digest.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref"`
	// ImagePullSecretName names a Secret of type kubernetes.io/dockerconfigjson in the provisioner's namespace.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ImagePullSecretName string `json:"pullSecret,omitempty"`
	// InsecureSkipTLSVerify accepts any certificate of the registry.
	//
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
	// CertificateData contains the CA certificates for the registry in PEM form.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CertificateData string `json:"certificateData,omitempty"`
	// Verification requires that the image is signed with cosign. This field is not in rukpak.
	//
	// +optional
	Verification *ImageVerification `json:"verification,omitempty"`
}

// ImageVerification names public keys in PEM form. At least one of the keys must verify a cosign signature of the image.
// Transparency logs are not consulted.
//
// +kubebuilder:validation:XValidation:rule="has(self.secret) != has(self.configMap)",message="set exactly one of secret and configMap"
type ImageVerification struct {
	// Secret contains the public keys.
	//
	// +optional
	Secret *PublicKeyReference `json:"secret,omitempty"`
	// ConfigMap contains the public keys.
	//
	// +optional
	ConfigMap *PublicKeyReference `json:"configMap,omitempty"`
}

// PublicKeyReference names a key of a Secret or ConfigMap in the provisioner's namespace.
type PublicKeyReference struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// +optional
	// +kubebuilder:default=cosign.pub
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// GitSource is a folder in a commit. An https:// or http:// repository can have a Secret with a user name and a password. An SSH
// repository requires a Secret with a key.
type GitSource struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Repository string `json:"repository"`
	// Directory is the folder that becomes the root of the bundle. Empty means the root of the repository.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(part, part == '..')",message="directory must be inside the repository: write a relative path without .."
	Directory string `json:"directory,omitempty"`
	Ref       GitRef `json:"ref"`
	// +optional
	Auth Authorization `json:"auth,omitempty"`
}

// GitRef names a commit in exactly one way. status.resolvedSource contains the commit.
//
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.commit)].filter(set, set).size() == 1",message="set exactly one of branch, tag and commit"
type GitRef struct {
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Branch string `json:"branch,omitempty"`
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Tag string `json:"tag,omitempty"`
	// Commit is the full hash of a commit.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}([0-9a-f]{24})?$`
	Commit string `json:"commit,omitempty"`
}

// HTTPSource is an address that returns a gzip-compressed tar archive with status 200.
type HTTPSource struct {
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://`
	URL string `json:"url"`
	// SHA256 is the expected digest of the archive in hexadecimal digits. If it is empty, any archive is accepted, and
	// status.resolvedSource contains the digest of the archive that was unpacked. This field is not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
	// +optional
	Auth Authorization `json:"auth,omitempty"`
}

// ConfigMapSource places each key of a ConfigMap as a file into a folder of the bundle.
type ConfigMapSource struct {
	// ConfigMap is in the provisioner's namespace.
	ConfigMap LocalReference `json:"configMap"`
	// Path is the folder for the files of the ConfigMap. Empty means the root of the bundle.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(part, part == '..')",message="path must be inside the bundle: write a relative path without .."
	Path string `json:"path,omitempty"`
}

// UploadSource is an archive that a client uploads.
type UploadSource struct {
	// SHA256 is the expected digest of the archive in hexadecimal digits. If it is empty, any archive is accepted. An upload with a
	// digest is kept while status.history of the BundleDeployment lists its Bundle, so that a rollback needs no new upload. This field is
	// not in rukpak.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
}

// Authorization contains the credentials for a source.
type Authorization struct {
	// Secret is in the provisioner's namespace. It has the keys username and password, or ssh-privatekey and ssh-knownhosts.
	//
	// +optional
	Secret LocalReference `json:"secret,omitempty"`
	// InsecureSkipVerify accepts any certificate, or any SSH host key.
	//
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// LocalReference names an object in the provisioner's namespace.
type LocalReference struct {
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}
