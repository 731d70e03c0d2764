CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean NOT NULL);
INSERT INTO schema_migrations VALUES (202308180833, false);

CREATE TYPE operation_type AS ENUM ('PROVISION', 'UPGRADE', 'DEPROVISION', 'RECONNECT_RUNTIME', 'UPGRADE_SHOOT', 'HIBERNATE', 'PROVISION_NO_INSTALL', 'DEPROVISION_NO_INSTALL');
CREATE TYPE operation_state AS ENUM ('IN_PROGRESS', 'SUCCEEDED', 'FAILED');
CREATE TYPE kyma_profile AS ENUM ('EVALUATION', 'PRODUCTION');

CREATE TABLE cluster (
	id uuid PRIMARY KEY CHECK (id <> '00000000-0000-0000-0000-000000000000'),
	kubeconfig text,
	tenant varchar(256) NOT NULL,
	creation_timestamp timestamp without time zone NOT NULL,
	deleted boolean DEFAULT false,
	sub_account_id varchar(256),
	active_kyma_config_id uuid,
	is_kubeconfig_encrypted boolean DEFAULT false
);

CREATE TABLE gardener_config (
	id uuid PRIMARY KEY,
	cluster_id uuid NOT NULL UNIQUE REFERENCES cluster (id) ON DELETE CASCADE,
	name varchar(256) NOT NULL,
	project_name varchar(256) NOT NULL,
	kubernetes_version varchar(256) NOT NULL,
	volume_size_gb varchar(256),
	disk_type varchar(256),
	machine_type varchar(256) NOT NULL,
	machine_image varchar(256),
	machine_image_version varchar(256),
	region varchar(256) NOT NULL,
	provider varchar(256) NOT NULL,
	purpose varchar(256),
	licence_type varchar(256),
	seed varchar(256) NOT NULL,
	target_secret varchar(256) NOT NULL,
	worker_cidr varchar(256) NOT NULL,
	pods_cidr varchar(256),
	services_cidr varchar(256),
	auto_scaler_min integer NOT NULL,
	auto_scaler_max integer NOT NULL,
	max_surge integer NOT NULL,
	max_unavailable integer NOT NULL,
	enable_kubernetes_version_auto_update boolean NOT NULL,
	enable_machine_image_version_auto_update boolean NOT NULL,
	exposure_class_name varchar(256),
	provider_specific_config jsonb,
	shoot_networking_filter_disabled boolean,
	control_plane_failure_tolerance varchar(256),
	eu_access boolean DEFAULT false
);

CREATE TABLE operation (
	id uuid PRIMARY KEY,
	type operation_type NOT NULL,
	state operation_state NOT NULL,
	message text,
	start_timestamp timestamp without time zone NOT NULL,
	end_timestamp timestamp without time zone,
	cluster_id uuid NOT NULL REFERENCES cluster (id) ON DELETE CASCADE,
	stage varchar(256) NOT NULL,
	last_transition timestamp without time zone,
	err_message text NOT NULL DEFAULT '',
	reason text NOT NULL DEFAULT '',
	component text NOT NULL DEFAULT ''
);

CREATE TABLE kyma_config (
	id uuid PRIMARY KEY,
	release_id uuid,
	cluster_id uuid NOT NULL REFERENCES cluster (id) ON DELETE CASCADE,
	profile kyma_profile,
	global_configuration jsonb
);

CREATE TABLE cluster_administrator (
	id uuid PRIMARY KEY,
	cluster_id uuid NOT NULL REFERENCES cluster (id) ON DELETE CASCADE,
	user_id text NOT NULL,
	is_user_id_encrypted boolean DEFAULT false
);

CREATE TABLE oidc_config (
	id uuid PRIMARY KEY,
	gardener_config_id uuid NOT NULL REFERENCES gardener_config (id) ON DELETE CASCADE,
	client_id text NOT NULL,
	groups_claim text,
	issuer_url text NOT NULL,
	username_claim text,
	username_prefix text
);

CREATE TABLE signing_algorithms (
	id uuid PRIMARY KEY,
	oidc_config_id uuid NOT NULL REFERENCES oidc_config (id) ON DELETE CASCADE,
	algorithm text NOT NULL
);

CREATE TABLE dns_config (
	id uuid PRIMARY KEY,
	domain varchar(256) NOT NULL,
	gardener_config_id uuid NOT NULL UNIQUE REFERENCES gardener_config (id) ON DELETE CASCADE
);

CREATE TABLE dns_providers (
	id uuid PRIMARY KEY,
	dns_config_id uuid NOT NULL REFERENCES dns_config (id) ON DELETE CASCADE,
	domains_include varchar(256) NOT NULL,
	is_primary boolean NOT NULL,
	secret_name varchar(256) NOT NULL,
	type varchar(256) NOT NULL
);
