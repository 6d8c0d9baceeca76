// Written by scripts/uniform-types.py from the lists of utitools 0.5.0 (MIT, Copyright (c) 2024
// Rhet Turnbull); see docs/DEPENDENCIES.md.

/// Which uniform type identifier an extension has, and what that is a kind of: the published list.
enum UniformTypes {
    /// A line that begins with `<` is what all after it are kinds of; the others have identifiers,
    /// each with its extensions: `public.jpeg=jpg,jpeg`.
    static let table = """
        < com.adobe.postscript public.data public.composite-content public.item public.content
        com.adobe.encapsulated-postscript=eps
        < com.adobe.postscript-font public.font public.data public.item
        com.adobe.postscript-pfa-font=pfa com.adobe.postscript-pfb-font=pfb
        < com.allume.stuffit-archive public.data public.item public.archive
        com.stuffit.archive.sidx=sidx com.stuffit.archive.sit=sea,sit com.stuffit.archive.sitx=sitx
        < com.apple.bom-archive public.data public.item public.archive
        com.apple.bom-compressed-cpio=cpgz
        < com.apple.disk-image public.disk-image public.data public.item public.archive
        com.apple.disk-image-cdr=cdr,dvdr com.apple.disk-image-sparse=asif
        com.apple.disk-image-udif=dmg,img,udif com.roxio.disk-image-toast=toast public.iso-image=iso
        < com.apple.internet-location public.data public.stored-url public.item
        com.apple.afp-internet-location=afploc com.apple.ftp-internet-location=ftploc
        com.apple.vnc-internet-location=vncloc com.apple.web-internet-location=webloc
        < com.apple.mach-o-binary public.unix-executable public.data public.executable public.item
        com.apple.mach-o-dylib=dylib
        < com.apple.property-list public.data public.item public.content
        com.apple.shortcuts.workflow-file=wflow
        < com.apple.protected-mpeg-4-audio public.audio public.audiovisual-content public.data
        < public.item public.content
        com.apple.protected-mpeg-4-audio-b=m4b
        < com.apple.trace public.data public.item
        com.apple.ktrace=ktrace
        < com.apple.xar-archive public.data public.item public.archive
        com.apple.xip-archive=xip
        < com.audible.aa-audio public.audio public.audiovisual-content public.data public.item
        < public.content
        com.audible.aa-audiobook=aa com.audible.aax-audiobook=aax
        < com.microsoft.advanced-stream-redirector public.audio public.xml
        < public.audiovisual-content public.text public.data public.item public.content
        com.microsoft.windows-media-wax=wax
        < com.microsoft.advanced-stream-redirector public.movie public.xml
        < public.audiovisual-content public.text public.data public.item public.content
        com.microsoft.windows-media-wmx=wmx com.microsoft.windows-media-wvx=wvx
        < com.microsoft.advanced-systems-format public.audio public.audiovisual-content public.data
        < public.item public.content
        com.microsoft.windows-media-wma=wma
        < com.pkware.zip-archive public.data public.item public.archive
        public.zip-archive=zip
        < com.sun.java-archive public.zip-archive com.pkware.zip-archive public.data
        < public.executable public.item public.archive
        com.sun.web-application-archive=war
        < net.daringfireball.markdown public.plain-text public.text public.data public.item
        < public.content
        com.apple.documentation.guide=guide
        < org.gnu.gnu-tar-archive public.data public.item public.archive
        public.tar-archive=tar
        < org.gnu.gnu-zip-archive public.data public.item public.archive
        org.gnu.gnu-zip-tar-archive=tgz
        < org.khronos.glsl-source public.source-code public.plain-text public.text public.data
        < public.item public.content
        org.khronos.glsl.fragment-shader=frag,fragsh,fs,fsh
        org.khronos.glsl.geometry-shader=geom,gs,gsh org.khronos.glsl.tess-control-shader=ctrl
        org.khronos.glsl.tess-evaluation-shader=eval
        org.khronos.glsl.vertex-shader=vert,vertex,vs,vsh
        < org.oasis-open.opendocument public.data public.composite-content public.item
        < public.content
        org.oasis-open.opendocument.chart=odc org.oasis-open.opendocument.graphics=odg
        org.oasis-open.opendocument.graphics-template=otg org.oasis-open.opendocument.text=odt
        org.oasis-open.opendocument.text-master=odm org.oasis-open.opendocument.text-template=ott
        org.oasis-open.opendocument.text-web=oth
        < org.oasis-open.opendocument public.data public.composite-content public.item
        < public.presentation public.content
        org.oasis-open.opendocument.presentation-template=otp
        < org.oasis-open.opendocument public.data public.composite-content public.item
        < public.spreadsheet public.content
        org.oasis-open.opendocument.spreadsheet=ods
        org.oasis-open.opendocument.spreadsheet-template=ots
        < org.oasis-open.opendocument public.data public.item public.content
        org.oasis-open.opendocument.formula=odf
        < org.openxmlformats.openxml public.data public.composite-content public.executable
        < public.item public.content
        org.openxmlformats.wordprocessingml.document.macroenabled=docm
        org.openxmlformats.wordprocessingml.template.macroenabled=dotm
        < org.openxmlformats.openxml public.data public.composite-content public.executable
        < public.item public.content public.spreadsheet
        org.openxmlformats.spreadsheetml.sheet.macroenabled=xlsm
        org.openxmlformats.spreadsheetml.template.macroenabled=xltm
        < org.openxmlformats.openxml public.data public.composite-content public.item public.content
        org.openxmlformats.wordprocessingml.document=docx
        org.openxmlformats.wordprocessingml.template=dotx
        < org.openxmlformats.openxml public.data public.composite-content public.item public.content
        < public.spreadsheet
        org.openxmlformats.spreadsheetml.sheet=xlsx org.openxmlformats.spreadsheetml.template=xltx
        < org.openxmlformats.openxml public.data public.composite-content public.presentation
        < public.item public.content
        org.openxmlformats.presentationml.presentation=pptx
        org.openxmlformats.presentationml.slideshow=ppsx
        org.openxmlformats.presentationml.template=potx
        < org.openxmlformats.openxml public.data public.composite-content public.presentation
        < public.item public.content public.executable
        org.openxmlformats.presentationml.presentation.macroenabled=pptm
        org.openxmlformats.presentationml.slideshow.macroenabled=ppsm
        org.openxmlformats.presentationml.template.macroenabled=potm
        < public.aifc-audio public.audio public.audiovisual-content public.data public.item
        < public.content
        public.aiff-audio=aif,aiff public.cdda-audio=cdda
        < public.audio public.audiovisual-content public.data public.item public.content
        com.apple.coreaudio-format=caf com.apple.protected-mpeg-4-audio=m4p
        com.digidesign.sd2-audio=sd2 com.microsoft.waveform-audio=bwf,wav,wave
        com.real.realaudio=ra,ram com.sony.wave64=w64 com.soundblaster.soundfont=sf2
        org.3gpp.adaptive-multi-rate-audio=amr org.xiph.flac=flac org.xiph.ogg-audio=oga,ogg
        public.aac-audio=aac,adts public.ac3-audio=ac3 public.aifc-audio=aifc public.au-audio=au,snd
        public.downloadable-sound=dls public.enhanced-ac3-audio=eac3,ec3
        public.midi-audio=kar,mid,midi,smf public.mp2=mp2 public.mp3=mp3,mpga
        public.mp4a-loas=latm,loas public.ulaw-audio=ul,ulaw,ulw
        < public.audiovisual-content public.data public.item public.content
        com.avid.open-media-framework=omf com.microsoft.advanced-systems-format=asf
        < public.bzip2-archive public.data public.item public.archive
        public.tar-bzip2-archive=tbz,tbz2
        < public.c-plus-plus-header public.source-code public.plain-text public.text public.data
        < public.item public.content
        public.c-plus-plus-inline-header=inl
        < public.c-source public.source-code public.plain-text public.text public.data public.item
        < public.content
        com.apple.iig-source=iig
        < public.camera-raw-image public.image public.data public.item public.content
        com.adobe.raw-image=dng com.canon.cr2-raw-image=cr2 com.canon.cr3-raw-image=cr3
        com.canon.crw-raw-image=crw com.dxo.raw-image=dxo com.epson.raw-image=erf
        com.fuji.raw-image=raf com.hasselblad.3fr-raw-image=3fr com.hasselblad.fff-raw-image=fff
        com.kodak.raw-image=dcr com.konicaminolta.raw-image=mrw com.leafamerica.raw-image=mos
        com.leica.pwl-raw-image=pwl com.leica.rwl-raw-image=rwl com.nikon.nrw-raw-image=nrw
        com.nikon.raw-image=nef com.olympus.raw-image=orf com.panasonic.raw-image=raw
        com.panasonic.rw2-raw-image=rw2 com.pentax.raw-image=pef com.phaseone.raw-image=iiq
        com.samsung.raw-image=srw com.sony.arw-raw-image=arw com.sony.raw-image=srf
        com.sony.sr2-raw-image=sr2
        < public.data com.apple.application public.executable public.item
        com.apple.application-file=app
        < public.data public.3d-content public.item public.content
        com.apple.scenekit.scene=scn,scnz com.pixar.universal-scene-description=usd,usdc
        com.pixar.universal-scene-description-mobile=usdz public.alembic=abc
        public.polygon-file-format=ply public.standard-tesselated-geometry-format=stl
        < public.data public.composite-content public.item public.content
        com.adobe.pdf=pdf com.adobe.postscript=ps com.adobe.xfdf=xfdf com.apple.freeform.board=board
        com.apple.ibooks-container=ibooks com.apple.ibooksauthor.book=book,iba
        com.apple.iwork.pages.sffpages=pages org.aafassociation.advanced-authoring-format=aaf
        org.idpf.epub-container=epub public.ofd=ofd
        < public.data public.composite-content public.item public.spreadsheet public.content
        com.microsoft.excel.xls=xls
        < public.data public.composite-content public.presentation public.item public.content
        com.apple.iwork.keynote.sffkey=key com.apple.iwork.keynote.sffkth=kth
        com.microsoft.powerpoint.pot=pot com.microsoft.powerpoint.pps=pps
        com.microsoft.powerpoint.ppt=ppt org.openoffice.presentation=sdd,sdp,sxi
        org.openoffice.presentation-template=sti
        < public.data public.contact public.item
        com.apple.addressbook.person=abcdp
        < public.data public.database public.item
        com.apple.itunes.db=itl com.apple.tv.database=tvdb
        < public.data public.email-message public.item public.message
        com.apple.mail.email=eml com.apple.mail.emlx=emlx com.microsoft.outlook.template=emltpl
        < public.data public.item
        com.adobe.edn=edn com.adobe.etd=etd com.adobe.fdf=fdf com.apple.addressbook.group=abcdg
        com.apple.color-file=ccl,clr com.apple.colorsync-profile=icc,icm,pf
        com.apple.icloud-file-fault=icloud com.apple.iphoto.ipmeta=ipmeta
        com.apple.iphoto.ipspot=ipspot com.apple.pdf-printer-settings=pset
        com.apple.pkpass-data=pkpass com.apple.preview.blank=blank com.apple.property-list=plist
        com.apple.scenekit.particlesystem=scnp com.apple.spritekit.serialized=sks
        com.apple.terminal.session=term com.apple.trace=atrc
        com.apple.wireless-diagnostics.wdmon=wdmon com.apple.xcode.mom=mom com.c-command.mbox=mbox
        com.microsoft.excel.openxml.addin=xlam com.microsoft.excel.sheet.binary.macroenabled=xlsb
        com.microsoft.excel.slk=slk com.microsoft.excel.xla=xla com.microsoft.excel.xlb=xlb
        com.microsoft.excel.xld=xld com.microsoft.excel.xll=xll com.microsoft.excel.xlm=xlm
        com.microsoft.office.openxml.theme=thmx com.microsoft.powerpoint.ppa=ppa
        com.microsoft.powerpoint.ppam=ppam com.microsoft.word.dictionary=dic
        com.microsoft.word.doc=doc com.microsoft.word.dot=dot
        com.microsoft.word.mhtml=mht,mhtm,mhtml com.rsa.pkcs-12=p12,pfx
        com.seriflabs.affinity=fh10,fh11 com.seriflabs.affinitypublisher.document=afpub
        gov.nih.nifti-1=nii org.nema.dicom=dcm,dicom public.x509-certificate=cer,crt,der,pem
        < public.data public.item public.archive
        com.apple.applesingle-archive=as com.apple.archive=aar,yaa com.apple.binhex-archive=hqx
        com.apple.encrypted-archive=aea com.apple.installer-package-archive=mpkg,pkg
        com.apple.macbinary-archive=bin com.apple.xar-archive=xar com.microsoft.cab=cab
        org.7-zip.7-zip-archive=7z org.gnu.gnu-tar-archive=gtar org.gnu.gnu-zip-archive=gz,gzip
        org.tukaani.tar-xz-archive=txz org.tukaani.xz-archive=xz public.bzip2-archive=bz,bz2
        public.cpio-archive=cpio,pax public.uuencoded-archive=uu public.z-archive=z
        < public.data public.item public.content
        com.apple.photos.apple-adjustment-envelope=aae
        com.apple.photos.slow-motion-video-sidecar=slm org.chromium.extension=crx
        org.oasis-open.opendocument.presentation=odp org.openoffice.formula=sxm
        org.openoffice.graphics=sda,sxd org.openoffice.graphics-template=std
        org.openoffice.text=sdw,sxw org.openoffice.text-master=sxg org.openoffice.text-template=stw
        public.avchd-content=bdm,bdmv
        < public.data public.item public.database public.content
        org.oasis-open.opendocument.database=odb
        < public.data public.item public.executable
        com.apple.itunes.ipa=ipa com.apple.itunes.ipsw=ipsw
        com.apple.quartz-composer-composition=qtz com.microsoft.windows-dynamic-link-library=dll
        com.microsoft.windows-executable=exe com.sun.java-class=class public.object-code=o
        < public.data public.item public.spreadsheet public.content
        com.microsoft.excel.xlt=xlt com.microsoft.excel.xlw=xlw org.openoffice.spreadsheet=sdc,sxc
        org.openoffice.spreadsheet-template=stc
        < public.data public.stored-url public.item
        com.microsoft.internet-shortcut=url
        < public.fax public.image public.data public.message public.item public.content
        com.j2.efx-fax=efx com.j2.jfx-fax=jfx
        < public.font public.data public.item
        com.apple.cfr-font=sfont com.apple.font-suitcase=suit public.opentype-font=otf
        < public.fortran-source public.source-code public.plain-text public.text public.data
        < public.item public.content
        public.fortran-77-source=f77 public.fortran-90-source=f90 public.fortran-95-source=f95
        < public.heif-standard public.image public.data public.item public.content
        public.avci=avci public.avcs=avcs public.avif=avif public.heic=heic public.heics=heics
        public.heif=heif,hif public.heifs=heifs
        < public.image org.oasis-open.opendocument public.data public.item public.content
        org.oasis-open.opendocument.image=odi org.oasis-open.opendocument.image-template=oti
        < public.image public.data public.item public.content
        ca.mcgill.mni.bic.mnc=minc,mnc com.adobe.illustrator.ai-image=ai
        com.adobe.photoshop-image=psd com.adobe.photoshop-large-image=psb com.apple.icns=icns
        com.apple.lsr-image=lsr com.apple.macpaint-image=pntg com.apple.pict=pct,pic,pict
        com.apple.quicktime-image=qti,qtif com.compuserve.gif=gif com.ilm.openexr-image=exr
        com.kodak.flashpix-image=fpx com.microsoft.bmp=bmp,dib com.microsoft.dds=dds
        com.microsoft.ico=ico com.sgi.sgi-image=sgi com.truevision.tga-image=tga
        org.khronos.astc=astc org.khronos.ktx=ktx org.webmproject.webp=webp public.jpeg=jpe,jpeg,jpg
        public.jpeg-2000=j2c,j2k,jp2,jpf,jpx public.mpo-image=mpo public.pbm=pbm,pfm,pgm,ppm
        public.png=png public.pvr=pvr public.radiance=hdr public.tiff=tif,tiff
        public.xbitmap-image=xbm
        < public.json public.text public.data public.content public.item public.haptics-content
        com.apple.haptics.ahap=ahap
        < public.json public.text public.data public.item public.content
        com.apple.dt.document.apns=apns
        < public.movie com.microsoft.advanced-systems-format public.audiovisual-content public.data
        < public.item public.content
        com.microsoft.windows-media-wm=wm com.microsoft.windows-media-wmp=wmp
        com.microsoft.windows-media-wmv=wmv
        < public.movie public.audiovisual-content public.data public.item public.content
        com.adobe.flash.video=f4a,f4b,f4p,f4v,flv com.apple.quicktime-movie=mov,qt
        com.real.realmedia=rm com.real.realmedia-vbr=rmvb org.smpte.mxf=mxf
        org.webmproject.webm=webm org.xiph.ogv=ogm,ogv public.3gpp=3gp,3gpp,sdv
        public.3gpp2=3g2,3gp2 public.avi=avi,vfw public.dv-movie=dif,dv
        public.flc-animation=cel,flc,fli public.mpeg=m15,m75,mpe,mpeg,mpg
        public.mpeg-2-transport-stream=ts public.mpeg-4=mp4,mpg4
        < public.mpeg-2-transport-stream public.movie public.audiovisual-content public.data
        < public.item public.content
        public.avchd-mpeg-2-transport-stream=m2ts,mts
        < public.mpeg-4 public.movie public.audiovisual-content public.data public.item
        < public.content
        com.apple.m4v-video=m4v
        < public.mpeg-4-audio public.audio public.audiovisual-content public.data public.item
        < public.content
        com.apple.m4a-audio=m4a com.apple.mpeg-4-ringtone=m4r
        < public.opentype-font public.font public.data public.item
        public.opentype-collection-font=otc
        < public.plain-text public.delimited-values-text public.text public.data public.item
        < public.content
        public.comma-separated-values-text=csv public.tab-separated-values-text=tsv
        < public.plain-text public.text public.data public.item public.content
        net.daringfireball.markdown=md,mdown public.patch-file=diff,patch
        < public.plain-text public.text public.data public.item public.content public.playlist
        public.m3u-playlist=m3u,m3u8
        < public.plain-text public.text public.log public.data public.item public.content
        com.apple.log=log
        < public.script public.source-code public.plain-text public.text public.data
        < public.executable public.item public.content
        com.netscape.javascript-source=js,mjs
        < public.script public.source-code public.plain-text public.text public.data public.item
        < public.content
        com.apple.applescript.script=scpt com.microsoft.typescript=tsx
        public.make-source=gmk,mak,make,mk public.shell-script=sh
        < public.shell-script public.script public.source-code public.plain-text public.text
        < public.data public.content public.item
        com.apple.terminal.shell-script=command,tool public.bash-script=bash public.csh-script=csh
        public.ksh-script=ksh public.perl-script=pl,pm public.php-script=ph3,ph4,php,php3,php4,phtml
        public.python-script=py public.ruby-script=rb,rbw public.tcsh-script=tcsh
        public.zsh-script=zsh
        < public.source-code public.plain-text public.text public.data public.item public.content
        com.apple.clips-source=clp com.apple.metal=metal com.apple.rez-source=r
        com.apple.symbol-export=exp com.microsoft.hlsl=hlsl com.sun.java-source=jav,java
        org.khronos.glsl-source=glsl public.ada-source=ada,adb,ads public.assembly-source=s
        public.c-header=h public.c-plus-plus-header=hh,hp,hpp,hxx,ipp
        public.c-plus-plus-source=cc,cp,cpp,cxx public.c-source=c public.dylan-source=dlyan,lid
        public.fortran-source=f,for public.lex-source=l,ll,lm,lmm,lpp,lxx public.mig-source=defs,mig
        public.nasm-assembly-source=nasm public.objective-c-plus-plus-source=mm
        public.objective-c-source=m public.opencl-source=cl public.pascal-source=pas
        public.precompiled-c-header=pch public.protobuf-source=proto public.swift-source=swift
        public.yacc-source=y,ym,ymm,ypp,yxx,yy
        < public.source-code.preprocessed public.c-plus-plus-source public.source-code
        < public.plain-text public.text public.data public.item public.content
        public.c-plus-plus-source.preprocessed=ii
        < public.source-code.preprocessed public.c-source public.source-code public.plain-text
        < public.text public.data public.content public.item
        public.c-source.preprocessed=i
        < public.source-code.preprocessed public.objective-c-plus-plus-source public.source-code
        < public.plain-text public.text public.data public.item public.content
        public.objective-c-plus-plus-source.preprocessed=mii
        < public.source-code.preprocessed public.objective-c-source public.source-code
        < public.plain-text public.text public.data public.item public.content
        public.objective-c-source.preprocessed=mi
        < public.text public.data public.3d-content public.item public.content
        public.geometry-definition-format=obj
        < public.text public.data public.item public.content
        com.apple.ips=ips com.apple.xcode.projectdata=mode0,mode1,mode2,mode3
        com.microsoft.excel.space-separated-values-text=prn com.scenarist.closed-caption=scc
        org.w3.webvtt=vtt public.css=css public.html=htm,html,shtm,shtml public.json=json
        public.ndjson=ndjson public.plain-text=text,txt public.rtf=rtf public.xml=xml
        public.yaml=yaml,yml
        < public.text public.data public.item public.content public.calendar-event
        com.apple.ical.ics=ics com.apple.ical.vcs=vcal,vcs
        < public.text public.data public.item public.content public.contact
        public.vcard=vcard,vcf
        < public.text public.data public.item public.content public.playlist
        com.apple.music.rmp-playlist=rmp public.pls-playlist=pls
        < public.truetype-font public.font public.data public.item
        com.apple.truetype-datafork-suitcase-font=dfont public.truetype-collection-font=ttc
        public.truetype-ttf-font=ttf
        < public.url public.data public.item
        com.apple.itunes.store-url=itms
        < public.utf8-plain-text com.pixar.universal-scene-description public.plain-text public.text
        < public.3d-content public.data public.item public.content
        com.pixar.universal-scene-description-utf8=usda
        < public.utf8-plain-text public.plain-text public.text public.data public.item
        < public.content
        com.apple.chess.game=game com.apple.chess.pgn=pgn
        < public.utf8-plain-text public.plain-text public.text public.data public.log public.item
        < public.content
        com.apple.crashreport=crash com.apple.hangreport=hang com.apple.panicreport=panic
        com.apple.spinreport=spin
        < public.video public.movie public.audiovisual-content public.data public.item
        < public.content
        public.mpeg-2-video=m2v
        < public.xml public.audiovisual-content public.text public.data public.3d-content
        < public.item public.content
        org.khronos.collada.digital-asset-exchange=dae
        < public.xml public.audiovisual-content public.text public.data public.item public.content
        com.microsoft.advanced-stream-redirector=asx
        < public.xml public.image public.text public.data public.item public.content
        public.svg-image=svg,svgz
        < public.xml public.text public.data public.item public.content
        com.apple.interfacebuilder.document.cocoa=xib com.apple.mobileconfig=mobile
        com.apple.scripting-definition=sdef com.apple.systemprofiler.document=spx
        com.evernote.enex=enex com.seriflabs.xmp=xmp com.sun.java-web-start=jnlp
        com.topografix.gpx=gpx org.materialx.mtlx=mtlx org.oasis-open.xliff=xlf,xliff
        org.opml.opml=opml public.rss=rss public.xfd=xfd public.xhtml=xht,xhtm,xhtml
        < public.yaml public.text public.data public.item public.content
        com.apple.text-based-dylib=tbd
        < public.zip-archive com.pkware.zip-archive public.data public.executable public.item
        < public.archive
        com.sun.java-archive=jar
        """
}
