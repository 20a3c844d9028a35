// Made from infra/openapi.json by `npm run types`.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        FindLobbyRequest: {
            /** @description Modes of the namespace's current version that the lobby may have; the first decides what is created. Duplicates count once. */
            game_modes: string[];
            /** @description Regions that the lobby may be in, by `region_id`; a filter. None, or an empty list, means the recommended one: the nearest to the player where the deployment knows it, else the first region of the first mode. */
            regions?: string[] | null;
            /** @description The client's latencies by `region_id`, in milliseconds, integers or decimals; null for a region that it cannot reach. Other regions than these are not searched, and regions that the game lacks are ignored. With `regions`, those limit and latencies order. None, or an empty object, means that nothing was measured. */
            latencies?: {
                [key: string]: number | null;
            } | null;
            /** @description Tags that the lobby must have; a lobby created gets them. Only for modes that take tags. Lengths are in bytes of UTF-8. */
            tags?: {
                [key: string]: string;
            } | null;
            /** @description Seats of a lobby created for this request, at most the mode's own maximum; does not filter. Only for modes that allow it. */
            max_players?: number | null;
            /** @description Lobbies in which no seat is wanted, such as the one that the player just left. */
            exclude_lobby_ids?: string[] | null;
            /**
             * @description Whether to refuse rather than create a lobby.
             * @default false
             */
            prevent_auto_create_lobby?: boolean | null;
            /** @description The version of the game that the client is made for. Another one than the namespace runs is refused. */
            version_id?: string | null;
            captcha?: components["schemas"]["Captcha"] | null;
            /** @description Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep. */
            verification_data?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
             * @default 1
             */
            party_size?: number | null;
            /** @description What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is in the player token, readable by its holder, and passed to the game server and to the studio's own verification exactly as it was sent. Of a party, it is the first player's. */
            player_data?: components["schemas"]["Json"];
            /** @description The same of each player of a party, in the order of `players` in the response; null for one of whom nothing is said. Not with `player_data`. */
            players_data?: components["schemas"]["Json"][] | null;
        };
        /** @description The client's answers to captchas. */
        Captcha: {
            hcaptcha?: components["schemas"]["CaptchaResponse"] | null;
            turnstile?: components["schemas"]["CaptchaResponse"] | null;
        };
        CaptchaResponse: {
            /** @description What the captcha's provider gave the client. */
            client_response: string;
        };
        /** @description Any JSON. */
        Json: unknown;
        JoinLobbyRequest: {
            /** @description The lobby: its identifier, or the code of one that a player created. Any case and blanks around it are accepted. */
            lobby_id: string;
            /** @description The version of the game that the client is made for. Another one than the namespace runs is refused. */
            version_id?: string | null;
            captcha?: components["schemas"]["Captcha"] | null;
            /** @description Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep. */
            verification_data?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
             * @default 1
             */
            party_size?: number | null;
            /** @description What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is in the player token, readable by its holder, and passed to the game server and to the studio's own verification exactly as it was sent. Of a party, it is the first player's. */
            player_data?: components["schemas"]["Json"];
            /** @description The same of each player of a party, in the order of `players` in the response; null for one of whom nothing is said. Not with `player_data`. */
            players_data?: components["schemas"]["Json"][] | null;
        };
        CreateLobbyRequest: {
            /** @description A mode of the namespace's current version. */
            game_mode: string;
            /** @description Where the lobby is to run, by `region_id`. Without it the recommended region is taken: the nearest to the player where the deployment knows it, else the first region of the mode. */
            region?: string | null;
            /**
             * @description Whether the lobby may be found and listed, or only joined by its identifier or code.
             * @default private
             * @enum {string|null}
             */
            publicity?: "public" | "private" | null;
            /** @description Tags of the lobby. Only for modes that take tags. Lengths are in bytes of UTF-8. */
            tags?: {
                [key: string]: string;
            } | null;
            /** @description Seats of the lobby, at most the mode's own maximum. Only for modes that allow it. */
            max_players?: number | null;
            /** @description Passed to the game server with the lobby, exactly as it was sent: any JSON of up to 16 KiB, at most 16 deep. Numbers must be finite as doubles, and surrogates come in pairs. */
            lobby_config?: components["schemas"]["Json"];
            /** @description The version of the game that the client is made for. Another one than the namespace runs is refused. */
            version_id?: string | null;
            captcha?: components["schemas"]["Captcha"] | null;
            /** @description Passed to the studio's own verification exactly as it was sent; any content, at most 16 deep. */
            verification_data?: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Players who want seats of one lobby together, all or none: at most the mode's `party_size_max`.
             * @default 1
             */
            party_size?: number | null;
            /** @description What the client says of its player, such as a name: any JSON of up to 512 bytes, at most 16 deep. It is in the player token, readable by its holder, and passed to the game server and to the studio's own verification exactly as it was sent. Of a party, it is the first player's. */
            player_data?: components["schemas"]["Json"];
            /** @description The same of each player of a party, in the order of `players` in the response; null for one of whom nothing is said. Not with `player_data`. */
            players_data?: components["schemas"]["Json"][] | null;
        };
        FindLobbyResponse: {
            lobby: components["schemas"]["Lobby"];
            ports: components["schemas"]["Ports"];
            /** @description The player; of a party the first. */
            player: components["schemas"]["Player"];
            /** @description All players of a party; absent for a player alone. */
            players?: components["schemas"]["Player"][];
        };
        Lobby: {
            /**
             * Format: uuid
             * @description Identifies the lobby; the nil UUID in mocks.
             */
            lobby_id: string;
            /** @description What friends type in place of the identifier, as long as the lobby lives; only in the response of createLobby, to the lobby's maker. */
            code?: string;
            region: components["schemas"]["Region"];
            /** @description Repeats the ports beside the lobby. */
            ports: components["schemas"]["Ports"];
            /** @description Repeats the player beside the lobby. */
            player: components["schemas"]["Player"];
        };
        Region: {
            /** @description Short name that requests use; not a UUID. */
            region_id: string;
            /** @description Name that players read. */
            display_name: string;
        };
        /** @description Where to connect, by label. The ports of one lobby are all TLS or all not. */
        Ports: {
            [key: string]: components["schemas"]["Port"];
        };
        /** @description A single port, with `port_range` null, or a range, with `host` and `port` null. */
        Port: {
            /** @description Hostname and port: `hostname:port`. */
            host: string | null;
            /** @description The host alone; an IPv6 address in brackets, as in URLs. */
            hostname: string;
            /** @description The port. */
            port: number | null;
            port_range: components["schemas"]["PortRange"] | null;
            /** @description Whether to connect with TLS. */
            is_tls: boolean;
        };
        /** @description Any port from `min` to `max`, both included. */
        PortRange: {
            min: number;
            max: number;
        };
        Player: {
            /** @description Opaque text that the client shows the lobby server, which validates it. */
            token: string;
        };
        ListLobbiesResponse: {
            /** @description The listable modes of the namespace's current version. */
            game_modes: components["schemas"]["GameModeInfo"][];
            /** @description The game's regions, the nearest to the player first. */
            regions: components["schemas"]["RegionInfo"][];
            /** @description Public lobbies of these modes, those with a free seat first. */
            lobbies: components["schemas"]["LobbyInfo"][];
            /** @description Present, and true, when there are more lobbies than all pages may have. */
            is_truncated?: boolean;
            /** @description Present when there is another page: the query parameter `cursor` that requests it. */
            next_cursor?: string;
        };
        GameModeInfo: {
            /** @description The mode's name. */
            game_mode_id: components["schemas"]["Identifier"];
        };
        /** @description 1 to 64 letters, digits, hyphens and underscores. */
        Identifier: string;
        RegionInfo: {
            /** @description Short name that requests use; not a UUID. */
            region_id: string;
            /** @description Name of the provider that runs the machines there. */
            provider_display_name: string;
            /** @description Name that players read. */
            region_display_name: string;
            datacenter_coord: components["schemas"]["Coord"];
            datacenter_distance_from_client: components["schemas"]["Distance"];
            /**
             * Format: uri
             * @description URL that a client calls to measure its latency, by https or wss, or by http or ws at localhost; absent without one.
             */
            probe?: string;
        };
        Coord: {
            /** @description Degrees north. */
            latitude: number;
            /** @description Degrees east. */
            longitude: number;
        };
        /** @description In a straight line over the globe; 0 where the player's place is unknown. */
        Distance: {
            kilometers: number;
            miles: number;
        };
        LobbyInfo: {
            /** @description Where it runs. */
            region_id: components["schemas"]["Identifier"];
            /** @description Its mode. */
            game_mode_id: components["schemas"]["Identifier"];
            /**
             * Format: uuid
             * @description Identifies the lobby.
             */
            lobby_id: string;
            /** @description Seats that finds fill it up to. */
            max_players_normal: number;
            /** @description Seats that joins fill it up to. */
            max_players_direct: number;
            /** @description Seats that parties fill it up to, where that is more. */
            max_players_party: number;
            /** @description Seats held: players who connected, or are expected to. */
            total_player_count: number;
            /** @description Those of them whose players have connected. */
            connected_player_count: number;
            /** @description Its state, null when none was ever set; only when the request asks for states, and while those of the page so far fit into 256 KB. getLobbyState returns it, too. */
            state?: components["schemas"]["Json"];
        };
        ListRegionsResponse: {
            /** @description The nearest to the player first. */
            regions: components["schemas"]["RegionInfo"][];
        };
        /** @description Empty, unless the request asks for `details`. */
        ConnectPlayerResponse: {
            /** @description The player's name within the lobby, the same for as long as the player has the seat, also for a player who came back. */
            player_id?: string;
            /** @description How many tokens of the seat there were before the one that was shown: 0 unless the player came back. */
            generation?: number;
            /** @description True if another connection of the player may still be open: drop it. Absent otherwise. */
            replaced?: boolean;
            /** @description The name of the player's party within the lobby: the `player_id` of its first player. Absent for a player alone. */
            party_id?: string;
            /** @description How many players took their seats with the player; present with `party_id`. */
            party_size?: number;
            /** @description The `player_data` of the request that took the seat, exactly as it was sent; absent when it had none. Players claim it of themselves. */
            player_data?: components["schemas"]["Json"];
        };
        RegisterServerRequest: {
            /** @description Identifies the game server in its namespace; made by Muster when absent: the same for the same token, region and single ports, with a port range for the same `start_id`. */
            server_id?: string | null;
            /** @description Names this start of the process: made up once when it begins, sent with every call. It distinguishes a repeated registration from a new start. Without it a registration is a new start, unless its body equals that of one less than 10 seconds ago. */
            start_id?: string | null;
            /** @description Its region, one of the game's. */
            region_id: components["schemas"]["Identifier"];
            /** @description Modes that it can run; all when absent. */
            game_modes?: components["schemas"]["Identifier"][] | null;
            /**
             * @description Lobbies that it can run at once.
             * @default 1
             */
            capacity?: number | null;
            ports: components["schemas"]["ServerPorts"];
            /**
             * @description How long the lease lasts after a heartbeat. With 0 there is no lease: the game server counts as alive until it deregisters.
             * @default 60
             */
            lease_seconds?: number | null;
            /**
             * @description Whether its lobbies are ready at once; else each waits for setLobbyReady.
             * @default true
             */
            auto_ready?: boolean | null;
        };
        /** @description Where players connect, by label. All use TLS or none does. */
        ServerPorts: {
            [key: string]: components["schemas"]["ServerPort"];
        };
        /** @description Where players connect: at a single port or at any of a range. */
        ServerPort: {
            /** @description The host that players connect to: a name, an IPv4 address, or an IPv6 address, with or without brackets. Not an address on which programs only listen, such as `0.0.0.0`. Clients get it in brackets, and an international name in its ASCII form. */
            hostname: string;
            /** @description The port. */
            port?: number | null;
            port_range?: components["schemas"]["PortRange"] | null;
            /**
             * @description The protocol there; `https` and `tcp_tls` use TLS.
             * @enum {string}
             */
            protocol: "http" | "https" | "tcp" | "tcp_tls" | "udp";
        } & ({
            port: number;
        } | {
            port_range: components["schemas"]["PortRange"];
        });
        RegisterServerResponse: {
            /** @description Identifies the game server in its namespace. */
            server_id: components["schemas"]["Identifier"];
            /** @description When the lease lapses unless a heartbeat extends it; null without lease. */
            lease_expires_at: components["schemas"]["Time"] | null;
        };
        /**
         * Format: date-time
         * @description RFC 3339 in UTC with milliseconds.
         */
        Time: string;
        HeartbeatResponse: {
            /** @description When the lease lapses unless another heartbeat extends it; absent without lease. */
            lease_expires_at?: components["schemas"]["Time"];
            /** @description Present and true when the game server deregistered: it gets no lobby any more, and is unknown once these have ended. */
            draining?: boolean;
            /** @description True when Muster had it started and it had no lobbies for its idle time: it is to end. Absent otherwise. */
            stop?: boolean;
            /** @description Present when there are more lobbies. */
            cursor?: string;
            /** @description The lobbies that the game server runs, oldest first. */
            lobbies: components["schemas"]["ServerLobby"][];
        };
        ServerLobby: {
            /**
             * Format: uuid
             * @description Identifies the lobby.
             */
            lobby_id: string;
            /** @description The lobby's own token, for its state, readiness and players. */
            lobby_token: string;
            /** @description Its mode. */
            game_mode: components["schemas"]["Identifier"];
            /** @description Where it runs. */
            region_id: components["schemas"]["Identifier"];
            /** @description Its tags. */
            tags: {
                [key: string]: string;
            };
            /** @description Seats that finds fill it up to. */
            max_players: number;
            /** @description Its seats that are held. */
            seats: {
                /** @description Players on their way. */
                reserved: number;
                /** @description Players who connected. */
                connected: number;
            };
            /** @description What createLobby was given for it; absent when nothing was. */
            lobby_config?: components["schemas"]["Json"];
            /** @description When it was created. */
            created_at: components["schemas"]["Time"];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type FindLobbyRequest = components['schemas']['FindLobbyRequest'];
export type Captcha = components['schemas']['Captcha'];
export type CaptchaResponse = components['schemas']['CaptchaResponse'];
export type Json = components['schemas']['Json'];
export type JoinLobbyRequest = components['schemas']['JoinLobbyRequest'];
export type CreateLobbyRequest = components['schemas']['CreateLobbyRequest'];
export type FindLobbyResponse = components['schemas']['FindLobbyResponse'];
export type Lobby = components['schemas']['Lobby'];
export type Region = components['schemas']['Region'];
export type Ports = components['schemas']['Ports'];
export type Port = components['schemas']['Port'];
export type PortRange = components['schemas']['PortRange'];
export type Player = components['schemas']['Player'];
export type ListLobbiesResponse = components['schemas']['ListLobbiesResponse'];
export type GameModeInfo = components['schemas']['GameModeInfo'];
export type Identifier = components['schemas']['Identifier'];
export type RegionInfo = components['schemas']['RegionInfo'];
export type Coord = components['schemas']['Coord'];
export type Distance = components['schemas']['Distance'];
export type LobbyInfo = components['schemas']['LobbyInfo'];
export type ListRegionsResponse = components['schemas']['ListRegionsResponse'];
export type ConnectPlayerResponse = components['schemas']['ConnectPlayerResponse'];
export type RegisterServerRequest = components['schemas']['RegisterServerRequest'];
export type ServerPorts = components['schemas']['ServerPorts'];
export type ServerPort = components['schemas']['ServerPort'];
export type RegisterServerResponse = components['schemas']['RegisterServerResponse'];
export type Time = components['schemas']['Time'];
export type HeartbeatResponse = components['schemas']['HeartbeatResponse'];
export type ServerLobby = components['schemas']['ServerLobby'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
