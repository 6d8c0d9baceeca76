import Testing

extension MountSuites {
    /// What a person picks for an application, and for how long it has that.
    @Suite struct ApplicationPickTests {
        private static let options = MountedDomain.Options(
            prepare: """
                mkdir "$C/docs"; echo plan > "$C/docs/plan.md"; echo one > "$C/a.txt"; echo two > "$C/b.txt"
                """)

        private func picked(_ script: String, seconds: Int = 90) async throws {
            try await MountedDomain.with(Self.options) { domain in
                try await domain.shell(
                    """
                    ID=com.example.editor; D=\(domain.domainName)
                    app() { "$P" run --app $ID --domain $D -- "$@"; }
                    granted() { "$P" grants list --domain $D --app $ID --json; }
                    # `asked` answers the picker that is shown next.
                    serve() { "$P" pick --serve --web --no-browser 2> $T/pages & server=$!; }
                    asked() {
                        local count=$1; shift
                        within 10 "[ \\$(grep -c http $T/pages) -ge $count ]"
                        python3 "$W/pick_by_page.py" "$(grep -o 'http.*' $T/pages | sed -n ${count}p)" "$@"
                    }
                    server=; trap '[ -z "$server" ] || kill $server 2> /dev/null || true' EXIT
                    # `ask JSON [now]` inside: what the picker answers, by the application's socket alone. What shows
                    # pickers takes a moment to be there.
                    cat > $T/ask.py << 'END'
                    import http.client, json, os, socket, sys, time
                    for attempt in range(1 if "now" in sys.argv else 100):
                        connection = http.client.HTTPConnection("promisefs")
                        connection.sock = socket.socket(socket.AF_UNIX)
                        connection.sock.connect(os.environ["PROMISEFS_SOCKET"])
                        connection.request("POST", "/v1/picks", sys.argv[1], {"content-type": "application/json"})
                        answer = connection.getresponse()
                        data = "".join(line.decode()[5:].strip() for line in answer if line.startswith((b"data:", b"{")))
                        if "nobody shows pickers" not in data: break
                        time.sleep(0.2)
                    print(data, flush=True)
                    END
                    ask() { app python3 -c "$(cat $T/ask.py)" "$@"; }

                    """ + script, seconds: seconds)
            }
        }

        @Test(.timeLimit(.minutes(2))) func whatIsPickedForAnApplicationIsGivenToIt() async throws {
            try await picked(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null
                printf '3\\n' | "$P" pick --plain --at $M --app $ID --json > $T/picked 2> /dev/null
                grep -q '"grant":[0-9]' $T/picked; granted | grep -q '"path":"/a.txt"'
                [ "$(app cat granted/a.txt)" = one ]; app sh -c '[ ! -e granted/b.txt ]'
                [ -L "$M/Editor/Documents/a.txt" ]
                # Cancelled: nothing is given.
                before=$(granted); printf 'q\\n' | "$P" pick --plain --at $M --app $ID 2> /dev/null && exit 1
                [ "$(granted)" = "$before" ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func anApplicationAsksFromInsideAndHasItUntilItEnds() async throws {
            try await picked(
                """
                # Nobody shows pickers: it is told so at once.
                ask '{"mode":"open"}' now | grep -q 'nobody shows pickers'
                serve
                cat > $T/inside.sh << 'EOF'
                python3 -c "$1" '{"mode":"open","types":["public.text"]}'; cat granted/a.txt; echo two >> granted/a.txt
                EOF
                ask '{"mode":"none"}' | grep -q 'none of a picker'
                app sh -e -c "$(cat $T/inside.sh)" sh "$(cat $T/ask.py)" > $T/out & p=$!
                asked 1 a.txt; wait $p
                # Where it is in the view, and nowhere else.
                grep -qF '"path":"/granted/a.txt"' $T/out || grep -qF '"path":"granted/a.txt"' $T/out
                grep -q one $T/out; not grep -q "$M" $T/out; [ "$(tail -1 $M/a.txt)" = two ]
                # With the launch the right is gone.
                within 5 '! granted | grep -q a.txt'; app sh -c '[ ! -e granted/a.txt ]'
                ask '{"mode":"open"}' > $T/out & p=$!
                asked 2 --cancel; wait $p; grep -q '"cancelled":true' $T/out
                """)
        }

        @Test(.timeLimit(.minutes(2))) func anImportIsACopyThatGoesWithTheApplicationHoweverItEnds() async throws {
            try await picked(
                """
                serve
                cat > $T/inside.sh << 'EOF'
                python3 -c "$1" '{"mode":"import"}'; cat imports/a.txt; echo mine > imports/a.txt; sleep 60
                EOF
                app sh -e -c "$(cat $T/inside.sh)" sh "$(cat $T/ask.py)" > $T/out & p=$!
                asked 1 a.txt; within 10 'grep -q one $T/out'; [ "$(cat $M/a.txt)" = one ]
                [ "$(cat $M/.promisefs-views/*/imports/a.txt)" = mine ]
                kill -9 $p; wait $p 2> /dev/null || true
                within 10 '[ ! -e $M/.promisefs-views ]'; [ "$(granted | grep -c '"kind":"item"')" = 0 ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aQuestionGoesWithItsApplicationAndWithItsPicker() async throws {
            try await picked(
                """
                serve
                app python3 -c "$(cat $T/ask.py)" '{"mode":"open"}' > $T/out & p=$!
                within 10 'grep -q http $T/pages'; kill -9 $p; wait $p 2> /dev/null || true
                # The page is no use any more, and gives nothing.
                within 10 '! python3 "$W/pick_by_page.py" "$(grep -o "http.*" $T/pages)" a.txt 2> /dev/null'
                [ "$(granted | grep -c '"kind":"item"')" = 0 ]
                app python3 -c "$(cat $T/ask.py)" '{"mode":"open"}' > $T/out & p=$!
                within 10 '[ $(grep -c http $T/pages) = 2 ]'; kill -9 $server; wait $p
                grep -q 'ended without an answer' $T/out
                """)
        }

        /// In each mode: an application that dies before the person has said something has nothing, and leaves nothing.
        @Test(.timeLimit(.minutes(3))) func ofAnApplicationThatDiesNothingIsLeft() async throws {
            try await picked(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null; echo mine > $M/Editor/Documents/mine
                "$P" sync --wait $M; serve; n=0
                here() { find $M -not -path '*/.promisefs*' | sort; granted; }; before=$(here)
                for mode in '"open"' '"import"' '"create","name":"x"' '"save","name":"x"' \\
                    '"move","sources":["/container/Documents/mine"]' '"export","sources":["/container/Documents/mine"]'; do
                    n=$((n + 1)); app python3 -c "$(cat $T/ask.py)" "{\\"mode\\":$mode}" > $T/out 2>&1 & p=$!
                    within 10 "[ \\$(grep -c http $T/pages) -ge $n ]"; kill -9 $p; wait $p 2> /dev/null || true
                    within 10 '! python3 "$W/pick_by_page.py" "$(grep -o "http.*" $T/pages | tail -1)" --look 2> /dev/null'
                    within 10 '[ ! -e $M/.promisefs-views ]'; [ "$(here)" = "$before" ]
                done
                """, seconds: 150)
        }

        @Test(.timeLimit(.minutes(2))) func whatIsNotTheApplicationsIsNotItsToExport() async throws {
            try await picked(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null; echo mine > $M/Editor/Documents/mine
                serve
                ask '{"mode":"export","sources":["/container/../a.txt"]}' > $T/out || true; not grep -q '"picked"' $T/out
                ask '{"mode":"export","sources":["/granted/a.txt"]}' > $T/out || true; not grep -q '"picked"' $T/out
                ask '{"mode":"export","sources":["/container/Documents/mine"]}' > $T/out & p=$!
                asked 1 --here docs; wait $p; [ "$(cat $M/docs/mine)" = mine ]; [ -f $M/Editor/Documents/mine ]
                # What is the owner's: to hear of questions, and to answer them.
                for call in 'GET /v1/picks' 'POST /v1/picks/1/answer' 'GET /v1/picker-page'; do
                    app python3 -c "$(sed "s|\\"POST\\", \\"/v1/picks\\"|\\"${call% *}\\", \\"${call#* }\\"|" $T/ask.py)" '{}' \\
                        | grep -q problem:refused
                done
                # It learns of no place that is not in its view.
                grep -q '"picked":\\[\\]' $T/out; not grep -q docs $T/out
                """)
        }

        /// A copy of what a link led to was made with the person's rights, and was the application's where that was its folder.
        @Test(.timeLimit(.minutes(2)), arguments: ["link", "folder/secret", "later"])
        func whatAnApplicationsLinkLeadsToIsNotExported(name: String) async throws {
            try await picked(
                """
                "$P" container add --app $ID --name Editor $D > /dev/null; own=$M/Editor/Documents
                mkdir $T/outside; echo secret > $T/outside/secret
                [ \(name) != later ] || echo mine > $own/later
                ln -s $T/outside $own/folder; ln -s $T/outside/secret $own/link; serve
                ask '{"mode":"export","sources":["/container/Documents/\(name)"]}' > $T/out 2>&1 & p=$!
                if [ \(name) = folder/secret ]; then
                    # What is behind a link has no name in the domain.
                    wait $p; not grep -q '"picked"' $T/out
                else
                    within 10 'grep -q http $T/pages'; ln -sf $T/outside/secret $own/later
                    not asked 1 --here docs 2> $T/said; grep -q 'is a link' $T/said
                    kill $server; wait $p || true
                fi
                not grep -rq secret $M/docs; [ -z "$(find $M/docs -name '.gout*')" ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aSandboxWithAPickerNeedsNothingElse() async throws {
            try await picked(
                """
                mkdir $T/bin; cat > $T/bin/xdg-open << 'EOF'
                #!/bin/bash
                address=$(grep -o 'http://[^"]*' "${1#file://}")
                (sleep 0.2; exec python3 $W/pick_by_page.py "$address" a.txt < /dev/null > $T/page 2>&1) &
                EOF
                chmod +x $T/bin/xdg-open; export PATH=$T/bin:$PATH T W
                printf '%s\n' --ro-bind $R/clients/python /tmp/python > $T/profile
                "$P" run --app $ID --domain $D --picker --profile $T/profile -- sh -c 'PYTHONPATH=/tmp/python python3 -c "
                import promisefs
                for mode in (\\"open\\", \\"import\\"): print(promisefs.pick(mode)[0][\\"path\\"])
                "; cat granted/a.txt' > $T/out
                [ "$(tr '\n' ' ' < $T/out)" = '/documents/granted/a.txt /documents/imports/a.txt one ' ]
                # What shows pickers for a launch goes with it.
                within 5 '! pgrep -f "pick --serve.*--at $M" > /dev/null'
                """)
        }
    }
}
