import Foundation
import Testing

extension MountSuites {
    /// Documents that an application was given, in its view: one document, whatever happens to it.
    @Suite struct GrantedViewTests {
        /// `give PATH RIGHTS` prints the grant's number; `app COMMAND…` runs it as the application.
        private func shorthand(_ domain: MountedDomain) -> String {
            """
            ID=com.example.editor; D=\(domain.domainName)
            app() { "$P" run --app $ID --domain $D -- "$@"; }
            client() { PYTHONPATH=$R/clients/python python3 -c "
            import promisefs, sys
            d, _ = promisefs.locate('$M')
            $1" "${@:2}"; }
            give() { client "print(d.give(sys.argv[1], '$ID', rights=sys.argv[2])['id'])" "$1" "$2"; }
            revoke() { client "d.revoke(int(sys.argv[1]))" "$1"; }
            identifier() { getfattr -n user.promisefs.identifier --only-values "$1"; }\n
            """
        }

        private func given(
            _ script: String, seconds: Int = 60
        ) async throws {
            let options = MountedDomain.Options(
                arguments: ["--poll-interval", "1s"],
                prepare: """
                    mkdir -p $C/Work/sub; echo one > $C/Work/text.txt; echo beside > $C/Work/beside; echo in > $C/Work/sub/in
                    """)
            try await MountedDomain.with(options) { domain in
                try await domain.shell(shorthand(domain) + script, seconds: seconds)
            }
        }

        /// Outside it was a program with the rights of the domain's owner, root's where he is root.
        @Test(.timeLimit(.minutes(2))) func aProgramInAViewMakesNoSetUserIDPrograms() async throws {
            try await given(
                """
                give Work read-write > /dev/null
                app sh -c 'cd granted/Work; chmod 6755 text.txt; echo new > new; chmod 4711 new; mkdir -m 2755 folder
                    stat -c %a text.txt' > $T/seen
                [ "$(cat $T/seen)" = 755 ]; "$P" sync --wait $M
                [ "$(stat -c %a $M/Work/text.txt $M/Work/new $M/Work/folder | tr '\\n' ' ')" = '755 711 755 ' ]
                [ -z "$(find $C $M -perm /6000)" ]
                """)
        }

        /// It was told that all is well, and what it had saved went with the launch.
        @Test(.timeLimit(.minutes(2))) func savingADocumentThatIsNotGivenAnyMoreFails() async throws {
            try await given(
                """
                give Work/text.txt read-write > $T/grant; give Work/beside read-write > /dev/null
                cat > $T/inside.sh << 'END'
                cd granted; cat text.txt beside > /dev/null; echo there; read go
                for name in text.txt beside; do
                    echo work > t; if mv t $name 2> /dev/null; then echo "saved $name"; else echo "failed $name"; fi
                    if (echo work > $name) 2> /dev/null; then echo "made $name"; fi
                    [ -e t ] && cat t
                done
                END
                mkfifo $T/go; app sh -c "$(cat $T/inside.sh)" < $T/go > $T/said & p=$!
                exec 5> $T/go; within 10 '[ -s $T/said ]'
                revoke $(cat $T/grant); mv $M/Work/sub/in $M/Work/beside
                echo go >&5; exec 5>&-; wait $p
                [ "$(tr '\\n' ' ' < $T/said)" = 'there failed text.txt work failed beside work ' ]
                [ "$(cat $M/Work/text.txt $M/Work/beside | tr '\\n' ' ')" = 'one in ' ]
                """)
        }

        /// Only the mount itself was read-only: what was written in a view was sent.
        @Test(.timeLimit(.minutes(2))) func aReadOnlyDomainIsReadOnlyInViews() async throws {
            try await given(
                """
                give Work read-write > /dev/null; "$P" sync --wait $M; "$P" unmount $M
                "$P" mount --state-dir ${T%/tmp}/state --domain $D --read-only folder:$C $M 2> $T/said || cat $T/said
                app sh -c 'cat granted/Work/text.txt; echo more >> granted/Work/text.txt; echo new > granted/Work/new' \\
                    > $T/seen 2>&1 || true
                grep -qx one $T/seen; [ "$(cat $C/Work/text.txt)" = one ]; [ ! -e $C/Work/new ]
                """)
        }

        /// A link whose text is a reference's told where any item is whose identifier was known, and followed it.
        @Test(.timeLimit(.minutes(2))) func aReferenceTellsNothingOfWhatWasNotGiven() async throws {
            try await given(
                """
                "$P" reference add $M/Work/beside $M/Work/sub/outside > /dev/null
                "$P" reference add $M/Work/sub/in $M/Work/sub/inside > /dev/null
                give Work/sub read-write > /dev/null
                [ "$(readlink $M/Work/sub/outside)" = ../beside ]; [ "$(readlink $M/Work/sub/inside)" = in ]
                cat > $T/look.py << 'END'
                import os
                os.chdir("/documents/granted/sub")
                print(os.readlink("inside"), os.readlink("outside"))
                try:
                    record = '{"about":"x","identifier":"IDENTIFIER","kind":"file","path":"/x","schema":1}'
                    os.symlink("promisefs-reference:" + record, "forged")
                except PermissionError:
                    print("refused")
                os.symlink("in", "plain"); print(os.readlink("plain"))
                END
                sed -i "s/IDENTIFIER/$(identifier $M/Work/beside)/" $T/look.py
                [ "$(app python3 - < $T/look.py | tr '\\n' ' ')" = 'in .promisefs/not-given refused in ' ]
                """)
        }

        /// Below the same folder alone it led to what the application has.
        @Test(.timeLimit(.minutes(2))) func aReferenceInAContainerLeadsToWhatWasGiven() async throws {
            try await given(
                """
                container=$("$P" container add --app $ID --name Editor $D); give Work/text.txt read-write > /dev/null
                "$P" reference add $M/Work/beside "$container/Documents" > /dev/null
                app sh -c 'curl -sS --fail-with-body --unix-socket $PROMISEFS_SOCKET http://promisefs/v1/references \\
                    --json "{\\"target\\":\\"/granted/text.txt\\",\\"path\\":\\"/container/Documents\\"}"' > $T/made
                grep -q '"state":"found"' $T/made; mkdir $M/Else; mv $M/Work/text.txt $M/Else/moved
                app sh -c 'cd container/Documents; readlink text.txt beside; cat text.txt; echo two >> text.txt' > $T/seen
                [ "$(tr '\n' ' ' < $T/seen)" = '../../granted/text.txt .promisefs/not-given one ' ]
                [ "$(readlink "$container/Documents/text.txt")" = ../../Else/moved ]
                [ "$(tr '\n' ' ' < $M/Else/moved)" = 'one two ' ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aGrantedDocumentKeepsItsNameWhereverItIsMoved() async throws {
            try await given(
                """
                give Work/text.txt read-write > /dev/null; give Work/sub read > /dev/null
                [ "$(app sh -c 'ls granted; cat granted/text.txt granted/sub/in')" = "$(printf 'sub\\ntext.txt\\none\\nin')" ]
                cat > $T/inside.sh << 'EOF'
                cd /documents/granted
                for n in 1 2 3 4 5; do
                    until grep -q "round $n" text.txt; do sleep 0.02; done
                    echo "seen $n" >> text.txt
                done
                ls; [ ! -e beside ] && [ ! -e ../beside ]
                EOF
                app sh -s < $T/inside.sh > $T/out & p=$!
                cd $M; mkdir Else
                for n in 1 2 3 4 5; do
                    case $n in
                    1) f=Work/text.txt ;;
                    2) mv Work/text.txt Else/text; f=Else/text ;;
                    3) mv Else Renamed; f=Renamed/text ;;
                    4) mv Renamed/text .; f=text ;;
                    5) "$P" sync --wait $M; mv $C/text $C/Work/back; within 10 '[ -e Work/back ]'; f=Work/back ;;
                    esac
                    echo "round $n" >> $f; within 10 'grep -q "seen $n" $f'
                done
                wait $p; [ "$(tr '\\n' ' ' < $T/out)" = 'sub text.txt ' ]
                cd /; "$P" sync --wait $M; [ "$(grep -c . $C/Work/back)" = 11 ]
                """)
        }

        @Test(.timeLimit(.minutes(3))) func aDocumentIsSavedFromAViewInEveryWayAsOneDocument() async throws {
            try await given(
                """
                give Work/text.txt read-write > $T/grant; i=$(identifier $M/Work/text.txt); n=0
                check() {
                    [ "$(cat $M/Work/text.txt)" = "$1" ]; [ "$(identifier $M/Work/text.txt)" = "$i" ]
                    [ "$(app cat granted/text.txt)" = "$1" ]; [ "$(app ls -A granted)" = text.txt ]
                    [ "$(ls -A $M/Work | tr '\\n' ' ')" = 'beside sub text.txt ' ]
                    "$P" sync --wait $M; [ "$(cat $C/Work/text.txt)" = "$1" ]; [ "$(ls -A $C/Work | wc -l)" = 3 ]
                }
                # In place; over it; with a temporary file; with a backup that stays; without the old one; with an exchange that
                # is not to be had; a link; as patch(1), sed(1) and vim save.
                app sh -c 'echo 1 > granted/text.txt'; check 1
                app sh -c 'cd granted; echo 2 > .text.tmp; mv .text.tmp text.txt'; check 2
                app sh -c 'cd granted; mv text.txt text.txt~; echo 3 > text.txt; [ "$(cat text.txt~)" = 2 ]
                rm text.txt~'; check 3
                app sh -c 'cd granted; mv text.txt text.txt~; echo 4 > text.txt; ls -A | grep -q text.txt~'; check 4
                app sh -c 'cd granted; rm text.txt; [ ! -e text.txt ]; echo 5 > text.txt'; check 5
                app sh -c 'cd granted; ln text.txt keep; echo 6 > new; mv new text.txt; [ "$(cat keep)" = 5 ]'; check 6
                app sh -c 'cd granted; sed -i s/6/7/ text.txt'; check 7
                app sh -c 'cd granted; echo 8 > /tmp/other; cp --remove-destination /tmp/other text.txt'; check 8
                for way in yes no auto; do
                    app vim -u NONE -i NONE -n -es -c "set nocompatible backup backupcopy=$way" -c "%s/.*/vim $way/" \\
                        -c 'wq' granted/text.txt
                    check "vim $way"
                done
                app vim -u NONE -i NONE -es -c 'set swapfile writebackup' -c '%s/.*/swap/' -c 'wq' granted/text.txt; check swap
                # Removed and not made again it stays where it is.
                app rm granted/text.txt; check swap
                [ "$(client "print(d.grants('$ID')[0]['id'])")" = "$(cat $T/grant)" ]
                """, seconds: 150)
        }

        @Test(.timeLimit(.minutes(2))) func aDocumentThatTheProviderHasNotSeenKeepsItsGrant() async throws {
            try await given(
                """
                echo new > $M/fresh; give fresh read-write > /dev/null
                app sh -c 'cd granted; echo two > t; mv t fresh; cat fresh; mv fresh fresh~; echo three > fresh
                sleep 0.5; cat fresh'
                [ "$(cat $M/fresh)" = three ]; [ "$(app cat granted/fresh)" = three ]
                # Deleted outside while it is edited: what it was is not there to be saved, and what was written is.
                app sh -c 'cd granted; cat fresh > /dev/null; echo up > ../granted/up; until [ ! -e fresh ]; do sleep 0.01; done
                    echo again > t; ! mv t fresh 2> said; grep -q "Stale file handle" said; cat t' > $T/kept & p=$!
                within 10 'ls $M/.promisefs-views/*/scratch/up > /dev/null 2>&1'; rm $M/fresh; wait $p
                [ "$(cat $T/kept)" = again ]; [ ! -e $M/fresh ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func whatCannotBecomeADocumentIsNotLeftBehind() async throws {
            try await given(
                """
                give Work/text.txt read-write > /dev/null; give Work/beside read > /dev/null
                app sh -c 'cd granted; rm text.txt; ! mkdir text.txt 2> /dev/null; ! ln -s x text.txt 2> /dev/null
                    ln -s x link; ! mv -T link text.txt 2> /dev/null; ! mkfifo text.txt 2> /dev/null; rm link
                    [ "$(ls -A)" = beside ]'
                [ "$(cat $M/Work/text.txt)" = one ]
                cat > $T/inside.sh << 'EOF'
                cd /documents/granted; rm text.txt; echo up > up; until [ ! -e beside ]; do sleep 0.02; done
                if echo two > text.txt; then exit 9; fi 2> /dev/null
                [ "$(ls -A)" = up ]; sleep 0.2
                EOF
                app sh -e -s < $T/inside.sh & p=$!; within 10 'ls $M/.promisefs-views/*/scratch/up > /dev/null 2>&1'
                rm -r $M/Work; wait $p
                within 5 '"$P" status $M --json | grep -q "\\"openFiles\\":0"'
                """)
        }

        @Test(.timeLimit(.minutes(2))) func anOpenDocumentShowsNoRightThatWasNotGiven() async throws {
            try await given(
                """
                give Work/text.txt read > /dev/null
                [ "$(app sh -c 'exec 3< granted/text.txt; stat -L -c %a /proc/self/fd/3')" = 444 ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aRevokedGrantEndsAtOnceAndLeavesWhatIsOpen() async throws {
            try await given(
                """
                g=$(give Work/text.txt read-write); give Work/beside read-write > /dev/null
                cat > $T/inside.sh << 'EOF'
                cd /documents/granted; exec 3<> text.txt; echo up > up
                until ! cat text.txt > /dev/null 2>&1; do sleep 0.02; done
                ls | tr '\\n' ' '; read line <&3; echo "$line"; echo done
                ! echo x > text.txt.new 2>/dev/null; ! mv text.txt.new text.txt 2> /dev/null || echo "made"; cat beside
                EOF
                app sh -s < $T/inside.sh > $T/out & p=$!
                within 10 'ls $M/.promisefs-views/*/scratch/up > /dev/null 2>&1'; revoke $g; wait $p
                grep -q '^beside up one$' $T/out; grep -q done $T/out; grep -q beside $T/out
                # Its name is an ordinary one of the application's now, and nobody else's.
                [ "$(cat $M/Work/text.txt)" = one ]
                """)
        }

        /// The document was the container's file then, which no end of the grant takes away.
        @Test(.timeLimit(.minutes(2))) func aDocumentSavedByALinkFromTheContainerIsNotKeptThere() async throws {
            try await given(
                """
                container=$("$P" container add --app $ID --name Editor $D)
                g=$(give Work/text.txt read-write)
                cat > $T/inside.py << 'END'
                import errno, os
                os.chdir("/documents")
                with open("container/x", "w") as file:
                    file.write("two")
                os.link("container/x", "granted/y")
                try:
                    os.rename("granted/y", "granted/text.txt")
                    print("renamed")
                except OSError as error:
                    print(errno.errorcode[error.errno])
                # A backup that comes back is the document itself, whose content is here once it was read.
                open("granted/text.txt").read()
                os.rename("granted/text.txt", "granted/text.txt~")
                os.rename("granted/text.txt~", "granted/text.txt")
                print(open("granted/text.txt").read(), end="")
                END
                app python3 - < $T/inside.py > $T/said
                [ "$(tr '\\n' ' ' < $T/said)" = 'EXDEV one ' ]
                [ "$(cat $M/Work/text.txt)" = one ]; [ ! "$container/x" -ef $M/Work/text.txt ]
                revoke $g; [ "$(app cat container/x)" = two ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func aContainerAndAFolderOfItsNameAreBothThere() async throws {
            try await given(
                """
                container=$("$P" container add --app $ID --name container $D); echo mine > "$container/mine"
                mkdir $M/Work/container; echo given > $M/Work/container/given; give Work/container read > /dev/null
                give container read > /dev/null
                app sh -c 'cat container/mine; cat granted/container*/given; echo more >> container/mine' > $T/seen
                [ "$(tr '\\n' ' ' < $T/seen)" = 'mine given ' ]; [ "$(tail -1 "$container/mine")" = more ]
                """)
        }

        @Test(.timeLimit(.minutes(2))) func attemptsFromInsideTheSandboxAreRefusedAndWritten() async throws {
            try await given(
                """
                echo secret > $M/secret; echo w > $M/write; echo r > $M/read; mkdir $M/folder; echo i > $M/folder/inside
                give write read-write > /dev/null; give read read > /dev/null; give folder read > /dev/null
                "$P" container add --app $ID --name Editor $D > /dev/null
                app python3 - $M < $R/scripts/workloads/view-attacks.py > $T/attempts \\
                    || { grep SUCCEEDED $T/attempts >&2; false; }
                [ "$(grep -c refused $T/attempts)" -ge 60 ]
                [ "$(cat $M/read $M/folder/inside $M/write)" = "$(printf 'r\\ni\\nw')" ]; [ "$(ls -A $M/folder)" = inside ]
                [ "$(stat -c %a $M/read)" = 644 ]
                # What reached the daemon has its line.
                client "print(sum(1 for line in d.audit('$ID') if line['outcome'] == 'refused'))" > $T/lines
                [ "$(cat $T/lines)" -ge 10 ]
                # From outside: root too, and another user.
                app sh -c 'echo up > container/up; sleep 98.7; true' & p=$!
                within 10 'inner=$(pgrep -n -x -f "sleep 98.7")'
                ! ls /proc/$inner/root/documents/granted 2> $T/said; grep -q 'Permission denied' $T/said
                ! cat /proc/$inner/root/documents/granted/read 2> /dev/null
                kill $p; wait $p || true
                """)
        }
    }
}
